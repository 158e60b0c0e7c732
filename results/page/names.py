"""Explanations of names of a fabric's parts, flows and edges, for new readers. Pure.

Changes when names tell something else. ``p0.s0.h0.r0>p0.s1.h0.r0#0`` is short enough for tables, but new readers do not
know it. A section of a page explains the first name of each kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hpn.failover.analysis.edge import Edge, EdgeKind
from hpn.failover.analysis.model import EdgeResult
from hpn.results.run.drill import AskedFault
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Node, Role

_NAME = re.compile(r"[A-Za-z][\w.]*(?:>[\w.]+#\d+|-[\w.]+|:\w+)?")
_FLOW = re.compile(r"(.+)>(.+)#(\d+)")
ROLES = {Role.HOST: "host", Role.TOR: "ToR", Role.AGG: "Agg", Role.CORE: "Core"}
_ORDINALS = ("first", "second", "third")
_MOST_LABELS = 200
"""Maximum edges searched for in a section's texts: a storm of flaps has thousands, all of one kind."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name and its meaning."""

    name: str
    words: str


@dataclass(frozen=True)
class Names:
    """Meanings of a run's names. ``fabric`` None: the folder lacks it, and names stay unexplained."""

    fabric: Fabric | None
    faults: Sequence[AskedFault] = ()
    edges: Sequence[EdgeResult] = ()
    _of_fault: Mapping[str, AskedFault] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_of_fault", {fault.id: fault for fault in self.faults})

    def first_of_each_kind(self, texts: Iterable[str]) -> tuple[Named, ...]:
        """Return the first name of each kind in texts of a section, with its meaning."""
        found: dict[str, Named] = {}
        for text in texts:
            for kind, named in (*self._parts(text), *self._labels(text)):
                found.setdefault(kind, named)
        return tuple(found.values())

    def words(self, name: str) -> str:
        """Return the meaning of a part or flow; '' if unknown."""
        return self._meaning(name)[1]

    def fault(self, id_: str) -> str:
        """Return 'link-down of p0.s0.h0.r0.0'; '' if the folder lacks the drill."""
        fault = self._of_fault.get(id_)
        return "" if fault is None else f"{fault.kind} of {fault.target}"

    def step(self, edge: Edge) -> str:
        """Return the step of a fault that an edge is; '' if the edge is the whole fault.

        Example: 'tor-leave of p0.s0.t0.0 (carrier stays)'.
        """
        fault = self._of_fault.get(edge.fault)
        of = () if fault is None else fault.moments
        first, here = (
            next((each.what for each in of if each.kind == edge.kind and each.index == index), "")
            for index in (0, edge.index)
        )
        return here if here != first else ""

    def _parts(self, text: str) -> Iterator[tuple[str, Named]]:
        for name in dict.fromkeys(_NAME.findall(text)):
            kind, words = self._meaning(name)
            if words:
                yield kind, Named(name, words)

    def _labels(self, text: str) -> Iterator[tuple[str, Named]]:
        for result in self.edges[:_MOST_LABELS]:
            edge = result.edge
            if edge.label in text:
                yield f"edge {edge.kind}", Named(edge.label, self._edge(edge))

    def _edge(self, edge: Edge) -> str:
        """Return 'the first failure of the fault cut (link-down of p0.s0.h0.r0.0)'."""
        number = _ORDINALS[edge.index] if edge.index < len(_ORDINALS) else f"{edge.index + 1}th"
        which = f"the {number} {edge.kind} of the fault{'s' * (len(edge.faults) > 1)} {' and '.join(edge.faults)}"
        asked = " and ".join(filter(None, map(self.fault, edge.faults))) if edge.kind is EdgeKind.FAILURE else ""
        return f"{which} ({asked})" if asked else which

    def _meaning(self, name: str) -> tuple[str, str]:
        """Return kind and meaning."""
        return ("", "") if self.fabric is None else _meaning(self.fabric, name)


def _meaning(fabric: Fabric, name: str) -> tuple[str, str]:
    flow, nics = _FLOW.fullmatch(name), fabric.nic_by_name
    if flow and flow[1] in nics and flow[2] in nics:
        return "flow", f"queue pair {flow[3]} from {_nic(fabric, nics[flow[1]])} to {_nic(fabric, nics[flow[2]])}"
    if name in nics:
        return "NIC", f"the NIC of {_nic(fabric, nics[name])}"
    if name in fabric.link_by_name:
        return "link", _link(fabric, fabric.link_by_name[name])
    if name in fabric.node_by_name:
        node = fabric.node_by_name[name]
        return node.role.value, _node(fabric, node)
    return _port(fabric, name)


def _port(fabric: Fabric, name: str) -> tuple[str, str]:
    """Return kind and meaning of a port label 'node:interface'."""
    node = name.partition(":")[0]
    for link in fabric.links_of(node) if node in fabric.node_by_name else ():
        if name in (link.lower.label, link.upper.label):
            here, there = (fabric.node_by_name[end.node] for end in (link.end_at(node), link.far_end(node)))
            return "port", f"the port of {_node(fabric, here)} towards {_node(fabric, there)}"
    return "", ""


def _link(fabric: Fabric, link: Link) -> str:
    """Return the meaning of a link. Both ends of an access link are in one segment, which appears once."""
    lower, upper = (fabric.node_by_name[end.node] for end in (link.lower, link.upper))
    if link.kind is not LinkKind.ACCESS:
        return f"the link from {_node(fabric, lower)} to {_node(fabric, upper)}"
    nic = fabric.nic_of_link(link.name)
    plane = f" of plane {link.plane}" if fabric.planes > 1 else f" {upper.index}"
    return f"the link from rail {nic.rail} of host {lower.index} to its ToR{plane}{_where(fabric, lower)}"


def _nic(fabric: Fabric, nic: Nic) -> str:
    return f"rail {nic.rail} of {_node(fabric, fabric.node_by_name[nic.host])}"


def _node(fabric: Fabric, node: Node) -> str:
    """Return 'host 3 in segment 1', 'the ToR of rail 2, plane 0 in segment 1', 'Agg 7 of plane 1'."""
    where = _where(fabric, node)
    if node.role is Role.HOST:
        return f"{'spare ' if node.spare else ''}host {node.index}{where}"
    of = [] if node.rail is None else [f"rail {node.rail}"]
    of += [f"plane {node.plane}"] if node.plane is not None and fabric.planes > 1 else []
    number = "the ToR" if node.role is Role.TOR and fabric.planes > 1 else f"{ROLES[node.role]} {node.index}"
    return f"{number}{' of ' + ', '.join(of) if of else ''}{where}"


def _where(fabric: Fabric, node: Node) -> str:
    """Return ' in segment 1', or ' in segment 1 of pod 0' if there are several pods."""
    places = [] if node.segment is None else [f"segment {node.segment}"]
    places += [f"pod {node.pod}"] if fabric.pods > 1 and node.role is not Role.CORE else []
    return f" in {' of '.join(places)}" if places else ""
