"""Distances between switches over the links that carry routes, as BGP counts them: one AS each. Pure.

Where switches have ASNs of their own, one refuses a path that has its ASN in it (RFC 4271 section 9.1.2): below spines
of one ASN no path goes down and up again. A configuration may allow it some times ('allowas-in', 'allow local as').
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.wired.configs import own_configs


@dataclass(frozen=True)
class Speaker:
    """A switch as BGP sees it: its ASN, and how often a path that it takes may have that already."""

    asn: int
    own_asn_times: int = 0

    def takes(self, path: Sequence[int]) -> bool:
        """Return True if it takes a route with this AS path."""
        return path.count(self.asn) <= self.own_asn_times


@dataclass(frozen=True)
class Reach:
    """Switches that reach some ToRs: links to the nearest, and the AS path that each announces.

    No ``speakers``: nobody refuses a path, and paths are empty.
    """

    distance: Mapping[str, int]
    path: Mapping[str, tuple[int, ...]]
    speakers: Mapping[str, Speaker]

    def leads(self, here: str, there: str) -> bool:
        """Return True if ``there`` is a next hop of ``here``, its neighbour."""
        nearer = here in self.distance and self.distance.get(there, self.distance[here]) < self.distance[here]
        return nearer and _takes(self.speakers, here, self.path[there])


class Adjacency:
    """The neighbours of every switch, once for each link that is not ``down``."""

    def __init__(self, fabric: Fabric, down: Collection[str] = ()) -> None:
        found: dict[str, list[str]] = {node.name: [] for node in fabric.switches}
        for link in fabric.links:
            if link.is_routed and link.name not in down:
                found[link.lower.node].append(link.upper.node)
                found[link.upper.node].append(link.lower.node)
        self.neighbours: Mapping[str, Sequence[str]] = found
        self._speakers = _speakers(fabric)

    def joined(self, origin: str) -> Mapping[str, int]:
        """Return the switches that links join with ``origin``, whatever BGP makes of them."""
        return _reach(self.neighbours, [origin], {}).distance

    def reach(self, origins: Iterable[str]) -> Reach:
        """Return the switches that reach ``origins``."""
        return _reach(self.neighbours, origins, self._speakers)


def _speakers(fabric: Fabric) -> Mapping[str, Speaker]:
    """Return the switches that may refuse a path; none where ASNs are those of tiers, in which no path has a valley."""
    if not fabric.spec.bgp.valleys:
        return {}
    configs = own_configs(fabric)
    times = {name: config.own_asn_times for name, config in configs.items()}
    return {node.name: Speaker(node.asn or 0, times.get(node.name, 0)) for node in fabric.switches}


def _takes(speakers: Mapping[str, Speaker], here: str, path: Sequence[int]) -> bool:
    return here not in speakers or speakers[here].takes(path)


def _reach(neighbours: Mapping[str, Sequence[str]], origins: Iterable[str], speakers: Mapping[str, Speaker]) -> Reach:
    """Search breadth first; without ``speakers`` no path is refused."""
    distance = dict.fromkeys(origins, 0)
    path = {name: _beyond(speakers, name, ()) for name in distance}
    edge, far = list(distance), 0
    while edge:
        far += 1
        new: list[str] = []
        for here in edge:
            for there in neighbours[here]:
                if there not in distance and _takes(speakers, there, path[here]):
                    distance[there] = far
                    path[there] = _beyond(speakers, there, path[here])
                    new.append(there)
        edge = new
    return Reach(distance, path, speakers)


def _beyond(speakers: Mapping[str, Speaker], here: str, path: tuple[int, ...]) -> tuple[int, ...]:
    """Return the AS path of a route that ``here`` announces onwards."""
    return (speakers[here].asn, *path) if here in speakers else path
