"""How each kind of fault is done to a running lab, and undone.

A new fault is one function here, listed in ``_MAKERS``: from the fault and the lab to its ``Action``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from failover.faults import (
    AdminDown,
    AggCrash,
    BgpReset,
    CoreCrash,
    End,
    Fault,
    HostDown,
    HostReplaced,
    LinkDown,
    LinkFlap,
    Need,
    NicDown,
    PlaneDown,
    StackUpgrade,
    TorControlHang,
    TorCrash,
    TorDataplaneDeath,
    TorDrain,
    TorLeave,
)
from failover.impairing import IMPAIRMENTS, impair
from testbed.lab.breakage import End as LinkEnd
from testbed.lab.lab import Lab


@dataclass(frozen=True, slots=True)
class Action:
    """How a fault is done and undone; both return when the kernel has carried them out."""

    do: Callable[[], None]
    undo: Callable[[], Awaitable[None]]


def action(fault: Fault, lab: Lab) -> Action:
    """The way to do ``fault`` to ``lab``; nothing is done yet."""
    return _MAKERS[type(fault)](fault, lab)


def _link(fault: LinkDown | LinkFlap, lab: Lab) -> Action:
    link = lab.fabric.link(fault.link)
    return _ports([(link, link.lower.node)], lab)


def _admin_down(fault: AdminDown, lab: Lab) -> Action:
    link = lab.fabric.link(fault.link)
    return _ports([(link, (link.lower if fault.end is End.HOST else link.upper).node)], lab)


def _host_ports(fault: NicDown | HostDown, lab: Lab) -> Action:
    return _ports([(link, link.lower.node) for link in fault.links_hit(lab.fabric)], lab)


def _ports(ends: list[LinkEnd], lab: Lab) -> Action:
    by = object()  # others may hold the same ports, and faults that are equal too
    lab.breakage.prepare(node for _link, node in ends)
    return Action(lambda: lab.breakage.ports_down(ends, by), _soon(lambda: lab.breakage.ports_up(ends, by)))


def _crash(fault: TorCrash | AggCrash | CoreCrash, lab: Lab) -> Action:
    return _switches_down((lab.fabric.node(fault.switch).name,), lab)


def _plane_down(fault: PlaneDown, lab: Lab) -> Action:
    return _switches_down(fault.dying(lab.fabric), lab)


def _switches_down(switches: tuple[str, ...], lab: Lab) -> Action:
    by = object()
    lab.breakage.prepare(switches)
    return Action(lambda: lab.breakage.crash(switches, by), lambda: lab.breakage.boot(switches, by))


def _hang(fault: TorControlHang, lab: Lab) -> Action:
    tor = lab.fabric.node(fault.switch).name
    return Action(lambda: lab.breakage.hang(tor), _soon(lambda: lab.breakage.resume(tor)))


def _drain(fault: TorDrain, lab: Lab) -> Action:
    tor = lab.fabric.node(fault.switch).name
    return Action(lambda: lab.breakage.withdraw(tor), _soon(lambda: lab.breakage.announce(tor)))


def _leave(fault: TorLeave, lab: Lab) -> Action:
    tor = lab.fabric.node(fault.switch).name
    return Action(lambda: lab.breakage.leave(tor), _soon(lambda: lab.breakage.rejoin(tor)))


def _dataplane(fault: TorDataplaneDeath, lab: Lab) -> Action:
    tor = lab.fabric.node(fault.switch).name
    lab.breakage.prepare_forwarding(tor)
    return Action(lambda: lab.breakage.stop_forwarding(tor), _soon(lambda: lab.breakage.start_forwarding(tor)))


def _upgrade(fault: StackUpgrade, lab: Lab) -> Action:
    tor = lab.fabric.node(fault.switch).name
    lab.breakage.prepare([tor])
    do = partial(lab.stacks.reload, tor, str(fault.version), fault.reload_ns)
    return Action(do, lambda: lab.stacks.restore(tor))


def _bgp_reset(fault: BgpReset, lab: Lab) -> Action:
    link = lab.fabric.link(fault.link)
    return Action(lambda: lab.breakage.reset_session(link), _soon(lambda: None))  # it comes back by itself


def _soon(undo: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """An undo that does not wait for anything."""

    async def undone() -> None:
        undo()

    return undone


def _impairment(fault: Fault, lab: Lab) -> Action:
    (link,) = fault.links_hit(lab.fabric)
    impairments = lab.impairments
    assert impairments is not None
    if Need.NFT_INGRESS in fault.NEEDS:
        impairments.open((link.lower.node, link.upper.node))
    return Action(lambda: impair(fault, link, impairments), lambda: impairments.lift(fault))


_MAKERS: Mapping[type[Fault], Callable[[Any, Lab], Action]] = {
    **dict.fromkeys(IMPAIRMENTS, _impairment),
    LinkDown: _link,
    LinkFlap: _link,
    AdminDown: _admin_down,
    NicDown: _host_ports,
    HostDown: _host_ports,
    HostReplaced: _host_ports,
    TorCrash: _crash,
    AggCrash: _crash,
    CoreCrash: _crash,
    PlaneDown: _plane_down,
    TorControlHang: _hang,
    TorDrain: _drain,
    TorLeave: _leave,
    TorDataplaneDeath: _dataplane,
    StackUpgrade: _upgrade,
    BgpReset: _bgp_reset,
}
