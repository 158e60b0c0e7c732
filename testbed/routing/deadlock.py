"""Deadlock of lossless queues: whether paths let channels wait for each other in a circle. Pure.

A channel is a link in one direction. A packet that holds room behind one waits for room behind the next on its path.
If these waits close a circle, all of it may stand still for ever, and no reroute helps (Dally, Seitz, IEEE Trans.
Computers C-36, 1987: no circle, no deadlock). Paths go up and then down in a Clos, so it has none.

Host links are left out: nothing waits behind a NIC that takes what arrives. Packets of all destinations share a queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from itertools import pairwise, permutations

from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.routing.distances import Adjacency
from hpn.testbed.routing.srv6.numbers import MOST_USIDS
from hpn.testbed.routing.srv6.switch_paths import ROUTINGS, SwitchGraph, end_of

Channel = tuple[str, str]
"""Sender and receiver, two switches; parallel links count as one."""

Waits = Mapping[Channel, Set[Channel]]
"""Channels that each channel may wait for."""

NextHops = Callable[[str, str], Iterable[str]]
"""The switches that one sends to, on the way to another."""

MOST_STEPS = 300_000
"""Most destinations times links of a search, which then takes a second or two."""
_STEPS_A_PATH = 8  # measured: 35 us a path of a full mesh, against 5 a destination and link
_FIRST = 64  # channels from which the shortest circle is looked for


def minimal(fabric: Fabric) -> NextHops:
    """Return the next hops of the minimal paths, which BGP takes."""
    adjacency = Adjacency(fabric)
    reach = {name: adjacency.reach([name]) for name in _ends(fabric)}

    def next_hops(here: str, target: str) -> Iterable[str]:
        return {there for there in adjacency.neighbours[here] if reach[target].leads(here, there)}

    return next_hops


def waits(fabric: Fabric, next_hops: NextHops) -> Waits:
    """Return who may wait for whom, on paths from every ToR with hosts to every other."""
    ends = _ends(fabric)
    found: dict[Channel, set[Channel]] = {}
    for target in ends:
        onward: dict[str, tuple[str, ...]] = {}
        edge = deque(each for each in ends if each != target)
        while edge:
            here = edge.popleft()
            if here not in onward and here != target:
                onward[here] = tuple(next_hops(here, target))
                edge.extend(onward[here])
        for here, hops in onward.items():
            for there in hops:
                after = found.setdefault((here, there), set())
                after.update((there, beyond) for beyond in onward.get(there, ()))
    return found


def static_waits(fabric: Fabric, routing: str) -> Waits:
    """Return the same for the static paths that ``srv6.routing`` offers."""
    graph, ends, found = SwitchGraph(fabric), _ends(fabric), dict[Channel, set[Channel]]()
    for start, end in permutations(ends, 2):
        for links in ROUTINGS[routing](graph, start, frozenset({end}), MOST_USIDS - 1):
            nodes = [end_of(start, links[:at]) for at in range(len(links) + 1)]
            channels = list(pairwise(nodes))
            for channel in channels:
                found.setdefault(channel, set())
            for channel, following in pairwise(channels):
                found[channel].add(following)
    return found


def circle(found: Waits) -> tuple[Channel, ...]:
    """Return a short circle of channels, each waiting for the next and the last for the first; empty without any."""
    inside = _in_circles(found)
    shortest: tuple[Channel, ...] = ()
    for first in sorted(inside)[:_FIRST]:
        around = _around(first, found, inside)
        if around and (not shortest or len(around) < len(shortest)):
            shortest = around
    return shortest


def deadlock_notes(fabric: Fabric) -> Iterator[str]:
    """Yield what lossless queues would mean where paths have a circle; nothing for others.

    Without mesh links, shortest paths of a fabric without failures lead up and then down.
    """
    links = sum(link.kind is LinkKind.MESH for link in fabric.links)
    if not links:
        return
    if _steps(fabric, links) > MOST_STEPS:
        yield "lossless switches may deadlock: nobody searched these many paths for switches that wait in a circle"
        return
    routing = "minimal" if fabric.spec.srv6 is None else fabric.spec.srv6.routing
    found = circle(waits(fabric, minimal(fabric)) if routing == "minimal" else static_waits(fabric, routing))
    if found:
        names = " > ".join([*(sender for sender, _ in found), found[0][0]])
        yield f"lossless switches may deadlock: {routing} paths let these wait for each other in a circle: {names}"


def _steps(fabric: Fabric, links: int) -> int:
    """Return the steps of the search; a static path between two ToRs costs several."""
    ends, srv6 = len(_ends(fabric)), fabric.spec.srv6
    if srv6 is None or srv6.routing == "minimal":
        return ends * links
    paths = srv6.most_paths if srv6.routing == "k-shortest" else len(fabric.switches)
    return ends**2 * paths * _STEPS_A_PATH


def _ends(fabric: Fabric) -> list[str]:
    """Return the ToRs with hosts."""
    return list(dict.fromkeys(link.upper.node for nic in fabric.nics for link in nic.links))


def _in_circles(found: Waits) -> frozenset[Channel]:
    """Return the channels that are in circles or between them: what is left when those without successors go."""
    before: dict[Channel, list[Channel]] = {}
    for channel, after in found.items():
        for each in after:
            before.setdefault(each, []).append(channel)
    left = {channel: len(after) for channel, after in found.items()}
    free = deque(channel for channel, count in left.items() if not count)
    while free:
        for channel in before.get(gone := free.popleft(), ()):
            left[channel] -= 1
            if not left[channel]:
                free.append(channel)
        del left[gone]
    return frozenset(left)


def _around(first: Channel, found: Waits, inside: Collection[Channel]) -> tuple[Channel, ...]:
    """Return the shortest circle through a channel; empty if there is none."""
    came: dict[Channel, Channel] = {}
    edge = deque([first])
    while edge:
        here = edge.popleft()
        for there in sorted(found[here]):
            if there == first:
                circle_back = [here]
                while circle_back[-1] != first:
                    circle_back.append(came[circle_back[-1]])
                return tuple(reversed(circle_back))
            if there in inside and there not in came:
                came[there] = here
                edge.append(there)
    return ()
