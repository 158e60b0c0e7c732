"""Manual faults and repairs of a running lab's parts, with the fault actions of drills: ``hpn break``, ``hpn mend``.

The lab itself knows its faults (``Breakage.held``); there is no separate list here.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Fabric, Link, Nic, Node, Role
from hpn.testbed.lab.breaking.breakage import End
from hpn.testbed.lab.lab import Lab


@dataclass(frozen=True, slots=True)
class ManualChange:
    """Result of a break or repair: links and switches that went down, that came up, and that stay down."""

    down: tuple[str, ...]
    up: tuple[str, ...]
    still_down: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ManualFault:
    """A broken part of a lab: how, whether it was broken by hand, and the links that it holds down."""

    part: str
    how: str
    by_hand: bool
    links: tuple[str, ...]


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
    if _is_switch(part):
        await lab.breakage.boot([name], by=name)
    else:
        lab.breakage.ports_up(_ends(lab.fabric, name), by=name)
    _tell(lab, at_ns, name, "restored")
    return _change(before, lab.breakage.down())


async def mend_all(lab: Lab) -> ManualChange:
    """Undo every break by hand; other faults (a switch that its stack shut) remain."""
    before = lab.breakage.down()
    for found in broken(lab):
        if found.by_hand:
            await mend_part(lab, found.part)
    return _change(before, lab.breakage.down())


def broken(lab: Lab) -> list[ManualFault]:
    """Return the broken parts, by name: by hand, by a stack itself, and switches whose daemon is lost."""
    down = lab.breakage.held()
    found = [_broken(lab.fabric, by, names) for by, names in down.items() if isinstance(by, str)]
    held = {each.part for each in found}
    lost = [name for name, daemon in lab.bgp.items() if daemon.trouble is not None and name not in held]
    return sorted([*found, *(ManualFault(name, "daemon lost", False, ()) for name in lost)], key=lambda each: each.part)


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
