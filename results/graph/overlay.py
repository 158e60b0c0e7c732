"""What is drawn over a fabric: what is down, what was broken, how busy links are, the way of a flow. Pure.

Changes when a picture can show something else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link, Node


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that was broken: ``part`` is a node, NIC or link of the fabric, ``text`` says what was done to it."""

    part: str
    text: str


@dataclass(frozen=True, slots=True)
class Overlay:
    """What to draw over a fabric. Names are those of its nodes and links.

    ``load``: links to the share of their rate that passes in the busier direction, 1.0 for all of it. ``path``: the
    links that a flow crosses, in order; ``dropped`` says why it ends before its destination, '' where it arrives.
    """

    down_nodes: Collection[str] = frozenset()
    down_links: Collection[str] = frozenset()
    faults: tuple[Mark, ...] = ()
    load: Mapping[str, float] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    dropped: str = ""

    def check(self, fabric: Fabric) -> None:
        """InputError, with the nearest names, when it speaks of something that the fabric does not have."""
        for name in self.down_nodes:
            fabric.node(name)
        for name in (*self.down_links, *self.path):
            fabric.link(name)
        for name, share in self.load.items():
            fabric.link(name)
            if not 0 <= share < float("inf"):
                raise InputError(f"the load of {name} is {share}; write a share of its rate, 0.5 for half of it")
        for fault in self.faults:
            fabric.part(fault.part)

    def numbers_at(self, fabric: Fabric) -> Mapping[str, tuple[int, ...]]:
        """Numbers of the faults, from 1, by the nodes and links that they are drawn at; a NIC's is at its links."""
        found: dict[str, tuple[int, ...]] = {}
        for number, fault in enumerate(self.faults, 1):
            part = fabric.part(fault.part)
            places = (part.name,) if isinstance(part, Node | Link) else tuple(link.name for link in part.links)
            for place in places:
                found[place] = (*found.get(place, ()), number)
        return found


NOTHING = Overlay()
"""A fabric as it was planned."""
