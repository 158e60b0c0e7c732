"""Coordinates of a part of a fabric, and the part of another fabric at the same coordinates. Pure.

Changes when fabrics get another kind of part that a drill can name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hpn.failover.faults.area import ALL, planes
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Node, Role
from hpn.testbed.files.document import shorten


class Axis(StrEnum):
    """Coordinate; its value is the plural for messages."""

    POD = "pods"
    SEGMENT = "segments"
    HOST = "hosts in a segment"
    SPARE = "spare hosts in a segment"
    RAIL = "rails"
    PORT = "ports at a NIC"
    PLANE = "planes"
    AGG = "Aggs in a plane"
    CORE = "Cores in a plane"
    NUMBER = "parallel links"


_INSIDE = {Axis.SEGMENT, Axis.HOST, Axis.SPARE, Axis.AGG, Axis.CORE, Axis.NUMBER}
"""Axes numbered per place named by the axes before them; a rail, in contrast, is the same rail everywhere."""
_LINKS = {
    LinkKind.ACCESS: "NIC-ToR link",
    LinkKind.FABRIC: "ToR-Agg link",
    LinkKind.CORE: "Agg-Core link",
    LinkKind.PEER: "peer link",
    LinkKind.MESH: "mesh link",
}
_NODES = {Role.HOST: "host", Role.TOR: "ToR", Role.AGG: "Agg", Role.CORE: "Core"}

Spot = tuple[tuple[Axis, int], ...]
Key = tuple[Axis, Spot]


@dataclass(frozen=True, slots=True)
class FabricPart:
    """Part of a fabric: name, sort as text, coordinates from the outside in."""

    name: str
    sort: str
    spot: Spot


class FabricParts:
    """Parts of one fabric that a drill may name."""

    def __init__(self, fabric: Fabric) -> None:
        """Collect all parts once."""
        self.fabric = fabric
        self.all = tuple(_parts(fabric))
        self._by_name = {part.name: part for part in self.all}

    def named(self, name: str) -> FabricPart | None:
        """Return the part of that name."""
        return self._by_name.get(name)


class Moving:
    """Mapping of parts to another fabric: the same place if it exists, else the first free one.

    Parts in one place stay in one place, and separate parts stay separate. Use: ``moved`` for every name.
    """

    def __init__(self, parts: Iterable[FabricPart], there: FabricParts) -> None:
        """Take ``parts``, all those that will be mapped."""
        self._there = there
        self._wanted: dict[Key, set[int]] = {}
        self._given: dict[Key, dict[int, int]] = {}
        for part in parts:
            for at, (axis, number) in enumerate(part.spot):
                self._wanted.setdefault(_key(axis, part.spot[:at]), set()).add(number)

    def moved(self, part: FabricPart) -> str:
        """Return the name of the part on the other fabric. InputError when that has no room for it."""
        found = [each for each in self._there.all if each.sort == part.sort]
        if not found:
            raise InputError(f"the drill needs {_a(part.sort)} ({shorten(part.name)}), and this fabric has none")
        for at, (axis, number) in enumerate(part.spot):
            numbers = sorted({of[axis] for each in found if axis in (of := dict(each.spot))})
            if numbers:
                number_there = self._number(part, _key(axis, part.spot[:at]), number, numbers)
                found = [each for each in found if dict(each.spot).get(axis, number_there) == number_there]
        return found[0].name

    def number(self, axis: Axis, number: int) -> int:
        """Return the rail or plane for one of the drill's; the same number if no part has been moved."""
        return self._given.get((axis, ()), {}).get(number, number)

    def _number(self, part: FabricPart, key: Key, number: int, numbers: list[int]) -> int:
        given = self._given.setdefault(key, {})
        if number not in given:
            kept = self._wanted[key].intersection(numbers) - {number}
            free = [each for each in numbers if each not in kept and each not in given.values()]
            if not free:
                raise InputError(_too_few(key[0], self._wanted[key], numbers, part.name))
            given[number] = number if number in free else free[0]
        return given[number]


def _too_few(axis: Axis, wanted: set[int], numbers: list[int], name: str) -> str:
    return f"the drill needs {max(2, len(wanted))} {axis} ({shorten(name)}), and this fabric has {len(numbers)}"


def _key(axis: Axis, before: Spot) -> Key:
    return axis, before if axis in _INSIDE else ()


def _a(sort: str) -> str:
    return f"an {sort}" if sort[0] in "AEIOUaeiou" else f"a {sort}"


def _parts(fabric: Fabric) -> Iterator[FabricPart]:
    ports = {link.upper.node: port for nic in fabric.nics for port, link in enumerate(nic.links)}
    nodes = {node.name: _node(node, ports) for node in fabric.nodes}
    yield from nodes.values()
    for nic in fabric.nics:
        yield _nic(nic, nodes)
        yield from (_access(nic, port, link, nodes) for port, link in enumerate(nic.links))
    seen: dict[tuple[str, str], int] = {}
    for link in fabric.links:
        if link.kind is not LinkKind.ACCESS:
            ends = link.lower.node, "" if link.kind is LinkKind.MESH else link.upper.node
            number = seen[ends] = seen.get(ends, -1) + 1
            yield FabricPart(link.name, _LINKS[link.kind], _between(nodes, link, number))
    yield from (FabricPart(name, "plane", ((Axis.PLANE, number),)) for number, name in enumerate(planes(fabric)))
    yield FabricPart(ALL, "part of the access links", ())


def _node(node: Node, ports: Mapping[str, int]) -> FabricPart:
    found: dict[Axis, int | None] = {}
    match node.role:
        case Role.HOST:
            index = Axis.SPARE if node.spare else Axis.HOST
            found = {Axis.POD: node.pod, Axis.SEGMENT: node.segment, index: node.index}
        case Role.TOR:
            found = {Axis.POD: node.pod, Axis.SEGMENT: node.segment, Axis.RAIL: node.rail}
            found[Axis.PORT] = ports.get(node.name, 0)
        case Role.AGG:
            found = {Axis.POD: node.pod, Axis.RAIL: node.rail, Axis.PLANE: node.plane, Axis.AGG: node.index}
        case Role.CORE:
            found = {Axis.PLANE: node.plane, Axis.CORE: node.index}
    sort = f"{'spare ' if node.spare else ''}{_NODES[node.role]}"
    return FabricPart(node.name, sort, tuple((axis, number) for axis, number in found.items() if number is not None))


def _nic(nic: Nic, nodes: Mapping[str, FabricPart]) -> FabricPart:
    host = nodes[nic.host]
    sort = "NIC" if host.sort == _NODES[Role.HOST] else "NIC of a spare host"
    return FabricPart(nic.name, sort, (*host.spot, (Axis.RAIL, nic.rail)))


def _access(nic: Nic, port: int, link: Link, nodes: Mapping[str, FabricPart]) -> FabricPart:
    of_nic = _nic(nic, nodes)
    sort = _LINKS[LinkKind.ACCESS] + of_nic.sort.removeprefix("NIC")
    return FabricPart(link.name, sort, (*of_nic.spot, (Axis.PORT, port)))


def _between(nodes: Mapping[str, FabricPart], link: Link, number: int) -> Spot:
    """Return the lower end's coordinates, extended by those of the upper end, and ``number`` among its like.

    A mesh link's ends have coordinates of one sort: it is the lower end's ``number``-th.
    """
    lower, upper = nodes[link.lower.node].spot, nodes[link.upper.node].spot
    there = {axis for axis, _ in lower}
    return (*lower, *(each for each in upper if each[0] not in there), (Axis.NUMBER, number))
