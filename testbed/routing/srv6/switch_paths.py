"""Paths between switches that static SRv6 offers to senders: an entry for each value of ``srv6.routing``. Pure.

Minimal routing has all shortest paths. Valiant's (Valiant and Brebner, STOC 1981) has detours beside them, each by way
of another switch. So traffic between two switches of a direct network has more than the few links between them. With
the k shortest paths (Yen, Management Science 1971; of random graphs: Jellyfish, NSDI 2012) their number is the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from itertools import islice

from hpn.testbed.fabric.model import Fabric, Link
from hpn.testbed.fabric.srv6_spec import Srv6Spec

Links = tuple[Link, ...]
_HALVES = 8  # shortest ways to an intermediate switch, and on from it, from which a detour is drawn


class SwitchGraph:
    """Switches of a fabric and the links that route between them."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self._distances: dict[frozenset[str], Mapping[str, int]] = {}

    def distances(self, ends: frozenset[str]) -> Mapping[str, int]:
        """Return links from every switch that reaches one of ``ends`` to the nearest of them."""
        if ends not in self._distances:
            self._distances[ends] = self._search(ends)
        return self._distances[ends]

    def shortest(self, start: str, ends: frozenset[str]) -> Iterator[Links]:
        """Yield the shortest paths from a switch to the nearest of ``ends``; nothing if it reaches none."""
        distance = self.distances(ends)
        if distance.get(start) == 0:
            yield ()
        for link in self.fabric.links_of(start) if distance.get(start) else ():
            there = link.far_end(start).node
            if link.is_routed and distance.get(there, distance[start]) < distance[start]:
                yield from ((link, *rest) for rest in self.shortest(there, ends))

    def _search(self, ends: frozenset[str]) -> Mapping[str, int]:
        """Search breadth first."""
        distance = dict.fromkeys(ends, 0)
        border = [*ends]
        while border:
            found = dict.fromkeys(there for node in border for there in self._neighbours[node] if there not in distance)
            steps = distance[border[0]] + 1
            distance |= dict.fromkeys(found, steps)
            border = [*found]
        return distance

    @cached_property
    def _neighbours(self) -> Mapping[str, Mapping[str, None]]:
        found: dict[str, dict[str, None]] = {node.name: {} for node in self.fabric.switches}
        for link in self.fabric.links:
            if link.is_routed:
                found[link.lower.node][link.upper.node] = None
                found[link.upper.node][link.lower.node] = None
        return found


def end_of(start: str, links: Links) -> str:
    """Return the switch where a path ends."""
    for link in links:
        start = link.far_end(start).node
    return start


def _minimal(graph: SwitchGraph, start: str, ends: frozenset[str], _most: int) -> Iterator[Links]:
    return graph.shortest(start, ends)


def _valiant(graph: SwitchGraph, start: str, ends: frozenset[str], most: int) -> Iterator[Links]:
    """Yield the shortest paths, then a detour by each other switch that leads to one."""
    shortest = list(graph.shortest(start, ends))
    yield from shortest
    for end in sorted({end_of(start, links) for links in shortest} - {start}):
        yield from _both_ways(start, end, lambda first, last: _detours(graph, first, last, most))


def _both_ways(start: str, end: str, found: Callable[[str, str], Iterator[Links]]) -> Iterator[Links]:
    """Yield the paths between two switches in one order for both directions."""
    first, last = sorted((start, end))
    for links in found(first, last):
        yield links if first == start else links[::-1]  # acknowledgements go back by the same links


def _detours(graph: SwitchGraph, start: str, end: str, most: int) -> Iterator[Links]:
    """Yield detours of at most ``most`` links that meet no switch twice, each once."""
    direct = graph.distances(frozenset({end}))[start]
    seen: set[Links] = set()
    for middle in (node.name for node in graph.fabric.switches if node.name not in (start, end)):
        there, on = (list(islice(graph.shortest(*half), _HALVES)) for half in (
            (start, frozenset({middle})), (middle, frozenset({end})),
        ))  # fmt: skip
        if not there or not on:
            continue
        draw = int.from_bytes(blake2b(f"{graph.fabric.spec.seed}/{start}/{end}/{middle}".encode()).digest()[:8], "big")
        links = (*there[draw % len(there)], *on[draw // len(there) % len(on)])
        if direct < len(links) <= most and links not in seen and _is_simple(start, links):
            seen.add(links)
            yield links


def _k_shortest(graph: SwitchGraph, start: str, ends: frozenset[str], most: int) -> Iterator[Links]:
    """Yield the first paths by their number of links, to each of the nearest of ``ends``; none meets a switch twice."""
    direct, spec = graph.distances(ends).get(start), graph.fabric.spec.srv6 or Srv6Spec()
    lengths = range(direct or 0, (most if direct else 0) + 1)

    def shortest(first: str, last: str) -> Iterator[Links]:
        every = (links for length in lengths for links in _of_length(graph, first, last, length, frozenset({first})))
        return islice(every, spec.most_paths)

    for end in sorted(end for end in ends if graph.distances(frozenset({end})).get(start, -1) == direct):
        yield from _both_ways(start, end, shortest)


def _of_length(graph: SwitchGraph, here: str, end: str, length: int, passed: frozenset[str]) -> Iterator[Links]:
    """Yield the paths of so many links, by each first link in turn, so that a few of them share little."""
    if here == end or not length:
        yield from [()] if here == end and not length else []
        return
    distance, branches = graph.distances(frozenset({end})), list[Iterator[Links]]()
    for link in graph.fabric.links_of(here):
        there = link.far_end(here).node
        if link.is_routed and there not in passed and distance.get(there, length) < length:
            onward = _of_length(graph, there, end, length - 1, passed | {there})
            branches.append(map((link,).__add__, onward))
    while branches:
        left = []
        for branch in branches:
            found = next(branch, None)
            if found is not None:
                left.append(branch)
                yield found
        branches = left


def _is_simple(start: str, links: Links) -> bool:
    """Return True if a path meets no switch twice."""
    nodes = [end_of(start, links[:at]) for at in range(len(links) + 1)]
    return len(nodes) == len(set(nodes))


Routing = Callable[[SwitchGraph, str, frozenset[str], int], Iterator[Links]]

ROUTINGS: Mapping[str, Routing] = {"minimal": _minimal, "valiant": _valiant, "k-shortest": _k_shortest}
"""By name: from a switch to the nearest of some, by so many links at most where a path is no shortest one."""
