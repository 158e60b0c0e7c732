"""Distances between switches over the links that carry routes, as BGP counts them: one AS each. Pure.

Where switches have ASNs of their own, one refuses a path that has its ASN in it (RFC 4271 section 9.1.2): below spines
of one ASN no path goes down and up again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric

_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Reach:
    """Switches that reach some ToRs: links to the nearest, and the ASNs of the path that each announces."""

    distance: Mapping[str, int]
    path: Mapping[str, frozenset[int]]
    asns: Mapping[str, int]

    def leads(self, here: str, there: str) -> bool:
        """Return True if ``there`` is a next hop of ``here``, its neighbour."""
        nearer = here in self.distance and self.distance.get(there, self.distance[here]) < self.distance[here]
        return nearer and self.asns.get(here) not in self.path[there]


class Adjacency:
    """The neighbours of every switch, once for each link that is not ``down``."""

    def __init__(self, fabric: Fabric, down: Collection[str] = ()) -> None:
        found: dict[str, list[str]] = {node.name: [] for node in fabric.switches}
        for link in fabric.links:
            if link.is_routed and link.name not in down:
                found[link.lower.node].append(link.upper.node)
                found[link.upper.node].append(link.lower.node)
        self.neighbours: Mapping[str, Sequence[str]] = found
        self._asns = {node.name: node.asn or 0 for node in fabric.switches} if fabric.spec.bgp.valleys else {}

    def joined(self, origin: str) -> Mapping[str, int]:
        """Return the switches that links join with ``origin``, whatever BGP makes of them."""
        return _reach(self.neighbours, [origin], {}).distance

    def reach(self, origins: Iterable[str]) -> Reach:
        """Return the switches that reach ``origins``."""
        return _reach(self.neighbours, origins, self._asns)


def _reach(neighbours: Mapping[str, Sequence[str]], origins: Iterable[str], asns: Mapping[str, int]) -> Reach:
    """Search breadth first; an empty ``asns`` refuses no path."""
    distance = dict.fromkeys(origins, 0)
    path = {name: frozenset((asns[name],)) if asns else _NONE for name in distance}
    edge, far = list(distance), 0
    while edge:
        far += 1
        new: list[str] = []
        for here in edge:
            for there in neighbours[here]:
                if there not in distance and asns.get(there) not in path[here]:
                    distance[there] = far
                    path[there] = path[here] | {asns[there]} if asns else _NONE
                    new.append(there)
        edge = new
    return Reach(distance, path, asns)
