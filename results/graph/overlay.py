"""Overlay of a picture: failed parts, faults, link loads, the path of a flow. Pure.

Changes when a picture can show something else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hpn.results.graph.cost import Cost
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link, Node


@dataclass(frozen=True, slots=True)
class Mark:
    """Mark of a fault: ``part`` is a node, NIC or link of the fabric, ``text`` describes the fault."""

    part: str
    text: str


@dataclass(frozen=True, slots=True)
class Overlay:
    """Data to draw over a fabric. Names are those of its nodes and links.

    ``load``: share of each link's rate in the busier direction, 1.0 for all of it. ``path``: the links that a flow
    crosses, in order; ``dropped``: why it ends before its destination, '' if it arrives. ``called``: what marks show.
    """

    down_nodes: Collection[str] = frozenset()
    down_links: Collection[str] = frozenset()
    faults: tuple[Mark, ...] = ()
    load: Mapping[str, float] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    dropped: str = ""
    called: str = "fault"
    costs: Mapping[str, Cost] = field(default_factory=dict)  # of nodes and links, by the failures tried on them

    def check(self, fabric: Fabric) -> None:
        """Raise InputError, with the nearest names, when it refers to something that the fabric does not have."""
        for name in self.down_nodes:
            fabric.node(name)
        for name in (*self.down_links, *self.path):
            fabric.link(name)
        for name, share in self.load.items():
            fabric.link(name)
            if not 0 <= share < float("inf"):
                raise InputError(f"the load of {name} is {share}; write a share of its rate, 0.5 for half of it")
        for name in (*(fault.part for fault in self.faults), *self.costs):
            fabric.part(name)

    def numbers_at(self, fabric: Fabric) -> Mapping[str, tuple[int, ...]]:
        """Return fault numbers, from 1, by the nodes and links where they are drawn; a NIC's is at its links."""
        found: dict[str, tuple[int, ...]] = {}
        for number, fault in enumerate(self.faults, 1):
            part = fabric.part(fault.part)
            places = (part.name,) if isinstance(part, Node | Link) else tuple(link.name for link in part.links)
            for place in places:
                found[place] = (*found.get(place, ()), number)
        return found


NOTHING = Overlay()
"""Empty overlay: the fabric as planned."""
