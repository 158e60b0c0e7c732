"""Manual faults and repairs of a running lab's parts, with the fault actions of drills: ``hpn break``, ``hpn mend``.

The lab itself knows its faults (``Breakage.held``); there is no separate list here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hpn.testbed.errors import InputError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Fabric, Link, Nic, Node, Role
from hpn.testbed.files.units import format_percent
from hpn.testbed.lab.breaking.breakage import End
from hpn.testbed.lab.breaking.impair import Drop, Traffic
from hpn.testbed.lab.lab import Lab

UP, DOWN, BOTH = "up", "down", "both"


@dataclass(frozen=True, slots=True)
class ManualChange:
    """Result of a break or repair: links and switches that went down, that came up, and that stay down.

    ``lossy``: parts whose links lose packets from now on, and how; ``lossless``: those that lose none any more.
    """

    down: tuple[str, ...]
    up: tuple[str, ...]
    still_down: tuple[str, ...]
    lossy: tuple[str, ...] = ()
    lossless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ManualFault:
    """A broken part of a lab: how, whether it was broken by hand, and the links that it holds down.

    ``silent``: its links lose packets, which nothing of the lab notices.
    """

    part: str
    how: str
    by_hand: bool
    links: tuple[str, ...]
    silent: bool = False


@dataclass(frozen=True, slots=True)
class SilentLoss:
    """Loss by hand of a share of the packets on a part's links, but of LACP and BGP none: a key of impairments.

    ``direction``: up, down or both.
    """

    part: str
    share: float
    direction: str = BOTH

    def __str__(self) -> str:
        return f"{self.part} {self.how}"

    @property
    def how(self) -> str:
        """Description of the loss."""
        way = "" if self.direction == BOTH else f" {self.direction}wards"
        return f"loses {format_percent(self.share)} of its packets{way}"


def lose(lab: Lab, loss: SilentLoss) -> ManualChange:
    """Have a part's links lose packets; a loss by hand that it has already is replaced. InputError if unknown."""
    at_ns, links = now_ns(), lab.fabric.links_in(loss.part)
    if loss.direction not in (UP, DOWN, BOTH) or not 0 < loss.share <= 1:
        raise InputError(f"a loss has a share up to 100 % and a direction, {UP}, {DOWN} or {BOTH}")
    for earlier in _losses(lab, loss.part):
        lab.impairments.lift_arrivals(earlier)
    for link in links:
        for port, way in ((link.upper, UP), (link.lower, DOWN)):
            if loss.direction in (way, BOTH):
                lab.impairments.on_arrival(loss, port, Drop(Traffic.NOT_CONTROL, loss.share))
    lab.emit(Event(at_ns, EventKind.FAULT, loss.part, "by hand", "injected", {"loss": format_percent(loss.share)}))
    return ManualChange((), (), (), lossy=(str(loss),))


def _losses(lab: Lab, part: str | None = None) -> list[SilentLoss]:
    """Return the losses by hand, of one part or of all."""
    found = (key for key in lab.impairments.arrival_keys() if isinstance(key, SilentLoss))
    return [loss for loss in found if part in (None, loss.part)]


def break_part(lab: Lab, name: str) -> ManualChange:
    """Break a part: a link, or every port of a NIC or host, loses carrier; a switch crashes. InputError if unknown."""
    before = lab.breakage.down()
    part, at_ns = lab.fabric.part(name), now_ns()
    if _is_switch(part):
        lab.breakage.crash([name], by=name)
    else:
        lab.breakage.ports_down(_ends(lab.fabric, name), by=name)
    _tell(lab, at_ns, name, "injected")
    return _change(before, lab.breakage.down())


async def mend_part(lab: Lab, name: str) -> ManualChange:
    """Undo a break; parts of it that were also broken by their own names stay broken. InputError if unknown."""
    before = lab.breakage.down()
    part, at_ns = lab.fabric.part(name), now_ns()
    losses = _losses(lab, name)
    for loss in losses:
        lab.impairments.lift_arrivals(loss)
    if _is_switch(part):
        await lab.breakage.boot([name], by=name)
    else:
        lab.breakage.ports_up(_ends(lab.fabric, name), by=name)
    _tell(lab, at_ns, name, "restored")
    return replace(_change(before, lab.breakage.down()), lossless=tuple(map(str, losses)))


async def mend_all(lab: Lab) -> ManualChange:
    """Undo every break by hand; other faults (a switch that its stack shut) remain."""
    before, losses = lab.breakage.down(), tuple(map(str, _losses(lab)))
    for found in broken(lab):
        if found.by_hand:
            await mend_part(lab, found.part)
    return replace(_change(before, lab.breakage.down()), lossless=losses)


def broken(lab: Lab) -> list[ManualFault]:
    """Return the broken parts, by name: by hand, by a stack itself, and switches whose daemon is lost."""
    down = lab.breakage.held()
    found = [_broken(lab.fabric, by, names) for by, names in down.items() if isinstance(by, str)]
    held = {each.part for each in found}
    lost = [name for name, daemon in lab.bgp.items() if daemon.trouble is not None and name not in held]
    silent = (ManualFault(loss.part, loss.how, True, (), silent=True) for loss in _losses(lab))
    return sorted(
        [*found, *silent, *(ManualFault(name, "daemon lost", False, ()) for name in lost)], key=lambda each: each.part
    )


def _broken(fabric: Fabric, by: str, names: set[str]) -> ManualFault:
    links = tuple(sorted(names & fabric.link_by_name.keys()))
    if not _is_switch(fabric.part(by)):
        return ManualFault(by, "no carrier", True, links)
    crashed = by in names
    return ManualFault(by, "crashed" if crashed else "shut its ports", crashed, links)


def _tell(lab: Lab, at_ns: int, name: str, what: str) -> None:
    """Put it on the timeline, as for a drill's faults."""
    lab.emit(Event(at_ns, EventKind.FAULT, name, "by hand", what))


def _change(before: set[str], after: set[str]) -> ManualChange:
    return ManualChange(tuple(sorted(after - before)), tuple(sorted(before - after)), tuple(sorted(after & before)))


def _is_switch(part: Node | Nic | Link) -> bool:
    return isinstance(part, Node) and part.role is not Role.HOST


def _ends(fabric: Fabric, name: str) -> list[End]:
    return [(link, link.lower.node) for link in fabric.links_in(name)]
