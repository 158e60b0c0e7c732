"""Any part of a running lab broken and mended by its name, with the levers of drills: ``hpn break``, ``hpn mend``.

What is broken the lab itself knows (``Breakage.held``); nothing here keeps a list beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Fabric, Link, Nic, Node, Role
from hpn.testbed.lab.breaking.breakage import End
from hpn.testbed.lab.lab import Lab


@dataclass(frozen=True, slots=True)
class Change:
    """What a break or a mend did: links and switches that went down, that came up, and that stay down."""

    down: tuple[str, ...]
    up: tuple[str, ...]
    still_down: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Broken:
    """A part of a lab that is broken: how, whether somebody broke it by hand, and the links that it holds down."""

    part: str
    how: str
    by_hand: bool
    links: tuple[str, ...]


def break_part(lab: Lab, name: str) -> Change:
    """A link, or every port of a NIC or host, loses carrier; a switch crashes. InputError when nothing is called so."""
    before = lab.breakage.down()
    part, at_ns = lab.fabric.part(name), now_ns()
    if _is_switch(part):
        lab.breakage.crash([name], by=name)
    else:
        lab.breakage.ports_down(_ends(lab.fabric, name), by=name)
    _tell(lab, at_ns, name, "injected")
    return _change(before, lab.breakage.down())


async def mend_part(lab: Lab, name: str) -> Change:
    """Undo it; a part of what was mended stays broken when it was broken by its own name too. InputError as above."""
    before = lab.breakage.down()
    part, at_ns = lab.fabric.part(name), now_ns()
    if _is_switch(part):
        await lab.breakage.boot([name], by=name)
    else:
        lab.breakage.ports_up(_ends(lab.fabric, name), by=name)
    _tell(lab, at_ns, name, "restored")
    return _change(before, lab.breakage.down())


async def mend_all(lab: Lab) -> Change:
    """Undo every break by hand; what else is down (a switch that its stack shut) stays so."""
    before = lab.breakage.down()
    for found in broken(lab):
        if found.by_hand:
            await mend_part(lab, found.part)
    return _change(before, lab.breakage.down())


def broken(lab: Lab) -> list[Broken]:
    """What is broken in a lab: by hand, by a stack's own doing, and switches whose daemon is lost; by name."""
    down = lab.breakage.held()
    found = [_broken(lab.fabric, by, names) for by, names in down.items() if isinstance(by, str)]
    held = {each.part for each in found}
    lost = [name for name, daemon in lab.bgp.items() if daemon.trouble is not None and name not in held]
    return sorted([*found, *(Broken(name, "daemon lost", False, ()) for name in lost)], key=lambda each: each.part)


def _broken(fabric: Fabric, by: str, names: set[str]) -> Broken:
    links = tuple(sorted(names & fabric.link_by_name.keys()))
    if not _is_switch(fabric.part(by)):
        return Broken(by, "no carrier", True, links)
    crashed = by in names
    return Broken(by, "crashed" if crashed else "shut its ports", crashed, links)


def _tell(lab: Lab, at_ns: int, name: str, what: str) -> None:
    """Put it on the timeline, as the faults of a drill are."""
    lab.emit(Event(at_ns, EventKind.FAULT, name, "by hand", what))


def _change(before: set[str], after: set[str]) -> Change:
    return Change(tuple(sorted(after - before)), tuple(sorted(before - after)), tuple(sorted(after & before)))


def _is_switch(part: Node | Nic | Link) -> bool:
    return isinstance(part, Node) and part.role is not Role.HOST


def _ends(fabric: Fabric, name: str) -> list[End]:
    return [(link, link.lower.node) for link in fabric.links_in(name)]
