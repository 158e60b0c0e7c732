"""Any part of a running lab broken and mended by its name, with the levers of drills: ``hpn break``, ``hpn mend``."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.fabric.model import Fabric, Link, Nic, Node, Role
from testbed.lab.breaking.breakage import End
from testbed.lab.lab import Lab


@dataclass(frozen=True, slots=True)
class Change:
    """What a break or a mend did: links and switches that went down, that came up, and that stay down."""

    down: tuple[str, ...]
    up: tuple[str, ...]
    still_down: tuple[str, ...]


def break_part(lab: Lab, name: str) -> Change:
    """A link, or every port of a NIC or host, loses carrier; a switch crashes. InputError when nothing is called so."""
    before = lab.breakage.down()
    part = lab.fabric.part(name)
    if _is_switch(part):
        lab.breakage.crash([name], by=name)
    else:
        lab.breakage.ports_down(_ends(lab.fabric, name), by=name)
    return _change(before, lab.breakage.down())


async def mend_part(lab: Lab, name: str) -> Change:
    """Undo it; a part of what was mended stays broken when it was broken by its own name too. InputError as above."""
    before = lab.breakage.down()
    part = lab.fabric.part(name)
    if _is_switch(part):
        await lab.breakage.boot([name], by=name)
    else:
        lab.breakage.ports_up(_ends(lab.fabric, name), by=name)
    return _change(before, lab.breakage.down())


def _change(before: set[str], after: set[str]) -> Change:
    return Change(tuple(sorted(after - before)), tuple(sorted(before - after)), tuple(sorted(after & before)))


def _is_switch(part: Node | Nic | Link) -> bool:
    return isinstance(part, Node) and part.role is not Role.HOST


def _ends(fabric: Fabric, name: str) -> list[End]:
    return [(link, link.lower.node) for link in fabric.links_in(name)]
