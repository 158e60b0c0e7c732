"""How each kind of fault is done to a running lab, and undone.

A new fault is one function here, listed in ``_MAKERS``: from the fault and the lab to its ``Action``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from failover.faults import Fault, LinkDown, LinkFlap, TorCrash
from testbed.lab.lab import Lab


@dataclass(frozen=True, slots=True)
class Action:
    """How a fault is done and undone; both return when the kernel has carried them out."""

    do: Callable[[], None]
    undo: Callable[[], Awaitable[None]]


def action(fault: Fault, lab: Lab) -> Action:
    """The way to do ``fault`` to ``lab``; nothing is done yet."""
    return _MAKERS[type(fault)](fault, lab)


def _carrier(fault: LinkDown | LinkFlap, lab: Lab) -> Action:
    link = lab.fabric.link(fault.link)

    async def mend() -> None:
        lab.mend(link)

    return Action(lambda: lab.cut(link), mend)


def _tor_crash(fault: TorCrash, lab: Lab) -> Action:
    tor = lab.fabric.node(fault.tor).name
    return Action(lambda: lab.crash(tor), lambda: lab.boot(tor))


_MAKERS: Mapping[type[Fault], Callable[[Any, Lab], Action]] = {
    LinkDown: _carrier,
    LinkFlap: _carrier,
    TorCrash: _tor_crash,
}
