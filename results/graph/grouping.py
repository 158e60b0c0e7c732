"""Grouping of a fabric for a picture: single nodes, or boxes for many nodes, and bundles of links. Pure.

Changes when a fabric that is too large for single nodes should be summarised in another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from hpn.results.text.width import shortened
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Node, Role


class Level(StrEnum):
    """Granularity of a picture: the nodes drawn as one box."""

    NONE = "none"  # every node by itself, every link a line
    HOSTS = "hosts"  # the hosts of a segment
    SEGMENT = "segment"  # the hosts of a segment, its ToRs in a plane, a pod's Aggs in a plane, a plane's Cores
    POD = "pod"  # the same of a whole pod


@dataclass(frozen=True, slots=True)
class Box:
    """Nodes drawn as one box. ``inside``: links between them; ``name`` is unique; ``lines`` is the text in the box."""

    name: str
    lines: tuple[str, ...]
    members: tuple[Node, ...]
    segment: int | None
    inside: tuple[Link, ...] = ()

    @property
    def role(self) -> Role:
        """Role of all its nodes."""
        return self.members[0].role

    @property
    def plane(self) -> int | None:
        """Plane of all its nodes; None for hosts."""
        return self.members[0].plane

    @property
    def pod(self) -> int:
        """Pod of all its nodes; 0 for Cores, which belong to none."""
        return self.members[0].pod


@dataclass(frozen=True, slots=True)
class Bundle:
    """Links drawn as one line from the box ``lower`` to the box ``upper``, referenced by name."""

    lower: str
    upper: str
    links: tuple[Link, ...]

    @property
    def kind(self) -> LinkKind:
        """Tier of all its links."""
        return self.links[0].kind

    @property
    def plane(self) -> int:
        """Plane of all its links."""
        return self.links[0].plane


@dataclass(frozen=True, slots=True)
class Drawn:
    """A fabric as boxes and bundles."""

    fabric: Fabric
    level: Level
    boxes: tuple[Box, ...]
    bundles: tuple[Bundle, ...]


_MOST_OF_A_NAME = 24
_MOST_NICS, _MOST_IN_A_ROW, _MOST_LINES = 160, 72, 800
"""Limits for drawing without groups, found by looking at pictures: beyond them lines cannot be distinguished."""


def drawn(fabric: Fabric, level: Level | None = None) -> Drawn:
    """Return what to draw; ``level`` None chooses the first at which the picture is legible.

    InputError without any host.
    """
    if not fabric.hosts:
        raise InputError(f"{fabric.spec.name} has no host, and nothing to draw")
    if level is not None:
        return _drawn(fabric, level)
    found = (_drawn(fabric, each) for each in Level if each is not Level.NONE or len(fabric.nics) <= _MOST_NICS)
    return next((each for each in found if _can_be_read(each)), _drawn(fabric, Level.POD))


def _can_be_read(found: Drawn) -> bool:
    rows = Counter((box.role, box.plane) for box in found.boxes if box.role is not Role.HOST or len(box.members) > 1)
    return max(rows.values(), default=0) <= _MOST_IN_A_ROW and len(found.bundles) <= _MOST_LINES


def _drawn(fabric: Fabric, level: Level) -> Drawn:
    box_of, boxes = _boxes(fabric.nodes, level)
    between: dict[tuple[str, ...], list[Link]] = {}
    for link in fabric.links:
        ends = (box_of[link.lower.node], box_of[link.upper.node])
        between.setdefault((*ends, link.name) if level is Level.NONE else ends, []).append(link)
    bundles = []
    for (lower, upper, *_), links in between.items():
        if lower == upper:
            boxes[lower] = replace(boxes[lower], inside=tuple(links))
        else:
            bundles.append(Bundle(lower, upper, tuple(links)))
    return Drawn(fabric, level, tuple(boxes.values()), tuple(bundles))


def _boxes(nodes: Iterable[Node], level: Level) -> tuple[dict[str, str], dict[str, Box]]:
    """Return the name of each node's box, and the boxes by name."""
    members: dict[str, list[Node]] = {}
    box_of = {}
    for node in nodes:
        box_of[node.name] = name = _GROUPS[level](node) or node.name
        members.setdefault(name, []).append(node)
    made = {}
    for name, found in members.items():
        one = name == found[0].name
        segment = None if level is Level.POD else found[0].segment
        made[name] = Box(
            name,
            (shortened(name, _MOST_OF_A_NAME),) if one else (*_count(found), name.partition(" ")[0]),
            tuple(found),
            segment,
        )
    return box_of, made


def _hosts_only(node: Node) -> str:
    return _by_segment(node) if node.role is Role.HOST else ""


def _by_segment(node: Node) -> str:
    if node.role is Role.HOST:
        return f"p{node.pod}.s{node.segment} hosts"
    if node.role is Role.TOR:
        return f"p{node.pod}.s{node.segment} plane {node.plane}"
    return _by_pod(node)


def _by_pod(node: Node) -> str:
    if node.role is Role.HOST:
        return f"p{node.pod} hosts"
    if node.role is Role.CORE:
        return f"c{node.plane} cores"
    return f"p{node.pod} plane {node.plane} {node.role.value}s"


_GROUPS: dict[Level, Callable[[Node], str]] = {
    Level.NONE: lambda _node: "",
    Level.HOSTS: _hosts_only,
    Level.SEGMENT: _by_segment,
    Level.POD: _by_pod,
}
"""Name of a node's box by level; '' if it has one of its own."""

WORDS = {Role.HOST: "host", Role.TOR: "ToR", Role.AGG: "Agg", Role.CORE: "Core"}
"""Name of a node by role."""


def counted(role: Role, number: int) -> str:
    """Return a number with its role: '1 ToR', '1,920 hosts'."""
    return f"{number:,} {WORDS[role]}" + ("" if number == 1 else "s")


def _count(members: list[Node]) -> tuple[str, ...]:
    spare = sum(node.spare for node in members)
    count = counted(members[0].role, len(members) - spare)
    return (count, f"+ {spare:,} spare") if spare else (count,)
