"""Ways to choose source ports, flow by flow: each knows what it has chosen so far, and the load of links. Pure."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from ipaddress import ip_address
from itertools import islice

from hpn.traffic.flows.flow import FlowSpec, answering
from hpn.traffic.flows.path_search import (
    SEARCH,
    Direction,
    Router,
    directions,
    drawn_ports,
    heaviest_load,
    leading_to,
    links_of,
    port_of,
    wanted_port,
)

_CANDIDATES = 6
MOST_CANDIDATES = 64
"""Candidates tried for a link-disjoint path: with 16 Aggs, all but one taken, 64 ports miss it once in 60 times."""


class InTurn:
    """Source ports assigned so far, and the load of each link in each direction."""

    def __init__(self, router: Router) -> None:
        self.chosen: list[FlowSpec] = []
        self.worst = ("", 0.0)
        self.router = router
        self.load: Counter[Direction] = Counter()
        self._taken: dict[str, set[int]] = {}
        self._turns: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()

    def add(self, flows: Sequence[FlowSpec]) -> None:
        """Choose source ports for flows that run alongside the present ones."""
        self.chosen += [self.answered(flow) for flow in [self._sent(flow) for flow in flows]]
        for way, bps in self.load.items():
            share = bps / self.router.rate_bps(way[0])
            if share > self.worst[1]:
                self.worst = (way[0], share)

    def drop(self, flows: Collection[int | None]) -> None:
        """Remove the load of the flows with these ids, which have ended; their ports stay reserved."""
        for flow in self.chosen:
            if flow.id in flows:
                self._weigh(flow, -1)

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        """Return the source port for data, if this is the ``turn``-th flow of its NIC."""
        port = wanted_port(flow, turn, self.router)
        return next(leading_to(port, flow, self.router, used), flow.sport)

    def answered(self, flow: FlowSpec) -> FlowSpec:
        """Return the flow with the source port of its acknowledgements."""
        used = self._taken.setdefault(flow.dst_nic, set())
        answers = answering(flow)
        port = wanted_port(answers, self._answers[flow.dst_nic], self.router)
        ports = leading_to(port, answers, self.router, used)
        found = replace(flow, ack_sport=next(ports, flow.ack_sport))
        self._answers[flow.dst_nic] += 1
        used.add(found.ack_sport)
        return found

    def _sent(self, flow: FlowSpec) -> FlowSpec:
        used = self._taken.setdefault(flow.src_nic, set())
        found = replace(flow, sport=self.sport(flow, self._turns[flow.src_nic], used))
        self._turns[flow.src_nic] += 1
        used.add(found.sport)
        self._weigh(found, 1)
        return found

    def _weigh(self, flow: FlowSpec, sign: int) -> None:
        for way in directions(links_of(flow, flow.sport, self.router)):
            self.load[way] += sign * int(flow.goodput_bps)


class Disjoint(InTurn):
    """Source ports whose paths load no link needlessly."""

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        """Return the port whose busiest link is the least busy."""
        return _best(flow, self.router, used, turn, self.load)


class LinkDisjoint(InTurn):
    """Source ports whose paths, from one NIC to another, share no link between switches while paths last."""

    def __init__(self, router: Router) -> None:
        super().__init__(router)
        self._crossed: dict[tuple[str, str], Counter[Direction]] = {}

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        """Return the port whose links between switches this pair of NICs uses least, then the least loaded."""
        crossed = self._crossed.setdefault((flow.src_nic, flow.dst_nic), Counter())
        best, inner, least = flow.sport, list[Direction](), (SEARCH, float("inf"))
        for _, sport in zip(range(MOST_CANDIDATES), self.candidates(flow, turn, used), strict=False):
            links = links_of(flow, sport, self.router)
            between = directions(links)[1:-1]
            cost = (sum(crossed[way] for way in between), heaviest_load(between, flow, self.router, self.load))
            if not links:
                continue
            if cost < least:
                best, inner, least = sport, between, cost
            if not any(self.load[way] for way in between):
                break
        crossed.update(inner)
        return best

    def candidates(self, flow: FlowSpec, turn: int, used: set[int]) -> Iterator[int]:
        """Yield candidate source ports in order of preference."""
        return leading_to(wanted_port(flow, turn, self.router), flow, self.router, used)


class Anew(LinkDisjoint):
    """Link-disjoint choice, repeated for queue pairs that have a path; the NIC port they leave by does not change."""

    def __init__(self, router: Router, staying: Sequence[FlowSpec]) -> None:
        super().__init__(router)
        for flow in staying:
            self._put(flow)

    def fits(self, flow: FlowSpec, sport: int) -> bool:
        """Place the flow on ``sport`` if no link between switches is shared; return True if it was placed."""
        links = links_of(flow, sport, self.router)
        free = sport not in self._taken.setdefault(flow.src_nic, set())
        fits = free and bool(links) and port_of(flow, sport, self.router) == port_of(flow, flow.sport, self.router)
        if not fits or any(self.load[way] for way in directions(links)[1:-1]):
            return False
        self._put(replace(flow, sport=sport))
        return True

    def again(self, flow: FlowSpec) -> FlowSpec:
        """Return the flow with the source port that is best now."""
        return self._sent(flow)

    def candidates(self, flow: FlowSpec, turn: int, used: set[int]) -> Iterator[int]:
        """Yield ports that keep the port of the flow's NIC."""
        return leading_to(port_of(flow, flow.sport, self.router), flow, self.router, used)

    def _put(self, flow: FlowSpec) -> None:
        self._taken.setdefault(flow.src_nic, set()).add(flow.sport)
        self._weigh(flow, 1)
        ways = directions(links_of(flow, flow.sport, self.router))[1:-1]
        self._crossed.setdefault((flow.src_nic, flow.dst_nic), Counter()).update(ways)


class Hashed(InTurn):
    """Source ports as a RoCE stack picks them."""

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        """Return the flow's own port."""
        return flow.sport

    def answered(self, flow: FlowSpec) -> FlowSpec:
        """Return the flow as it is."""
        return flow


class Drawn(InTurn):
    """Random source ports; ``seed`` decides. The draw of a queue pair is independent of all others."""

    def __init__(self, router: Router, seed: int) -> None:
        super().__init__(router)
        self._seed = seed

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        """Return a random port that its NIC does not use."""
        draw = random.Random(f"{self._seed} {flow.id} {flow.src_nic} {flow.dst_nic}")
        return next(port for port in drawn_ports(draw) if port not in used)

    def answered(self, flow: FlowSpec) -> FlowSpec:
        """Return the flow with a random port for its acknowledgements."""
        draw = random.Random(f"{self._seed} {flow.id} {flow.dst_nic} {flow.src_nic} acknowledged")
        return replace(flow, ack_sport=next(drawn_ports(draw)))


class DrawnOnce(Drawn):
    """One source port for all queue pairs between two NICs: ``drawn`` gives it to the only one of a connection."""

    def __init__(self, router: Router, seed: int) -> None:
        super().__init__(router, seed)
        self._connections: dict[tuple[str, str], int] = {}

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        """Return the random port of the two NICs."""
        number = self._connections.setdefault((flow.src_nic, flow.dst_nic), len(self._connections))
        return super().sport(replace(flow, id=number), turn, set())


class Pinned(InTurn):
    """Source ports that lead by the uplink whose turn is the destination's: hosts of a rack have one each."""

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        """Return a port that leads by the destination's uplink."""
        ports = islice(leading_to(wanted_port(flow, turn, self.router), flow, self.router, used), MOST_CANDIDATES)
        by_uplink = {links_of(flow, port, self.router)[1]: port for port in ports}
        destination = int(ip_address(flow.dst_ip)) - 1  # a rack's hosts are numbered from 1
        return by_uplink[sorted(by_uplink)[destination % len(by_uplink)]]


class Covering(InTurn):
    """Source ports whose paths cross what no path has crossed, then tell apart what no path has told apart.

    Greedy, as deTector (ATC 2017) plans its probes: coverage first, then identifiability, then the least load.
    """

    def __init__(self, router: Router, candidates: int = MOST_CANDIDATES) -> None:
        super().__init__(router)
        self._candidates = candidates
        self._class_of: dict[Direction, int] = {}
        self._sizes: Counter[int] = Counter()

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        """Return the port whose path crosses most that is new, then splits most sets of links."""
        best, most, ways = flow.sport, (-1, -1, float("-inf")), list[Direction]()
        ports = leading_to(wanted_port(flow, turn, self.router), flow, self.router, used)
        for _, sport in zip(range(self._candidates), ports, strict=False):
            crossed = directions(links_of(flow, sport, self.router))
            worth = (*self._worth(crossed), -heaviest_load(crossed, flow, self.router, self.load))
            if worth > most:
                best, most, ways = sport, worth, crossed
        self._split(ways)
        return best

    def _worth(self, ways: Sequence[Direction]) -> tuple[int, int]:
        """Return how many directions of links a path is the first to cross, and how many sets of them it splits."""
        fresh = sum(way not in self._class_of for way in ways)
        touched = Counter(self._class_of[way] for way in ways if way in self._class_of)
        return fresh, sum(count < self._sizes[each] for each, count in touched.items())

    def _split(self, ways: Sequence[Direction]) -> None:
        """Give the directions of a new path classes of their own."""
        new: dict[int | None, int] = {}
        for way in ways:
            before = self._class_of.get(way)
            number = new.setdefault(before, len(self._sizes) + len(new) + 1)
            if before is not None:
                self._sizes[before] -= 1
            self._class_of[way] = number
        self._sizes.update(self._class_of[way] for way in ways)


def _best(flow: FlowSpec, router: Router, taken: set[int], turn: int, load: Counter[Direction]) -> int:
    best, least = flow.sport, float("inf")
    candidates = leading_to(wanted_port(flow, turn, router), flow, router, taken)
    for _, sport in zip(range(_CANDIDATES), candidates, strict=False):
        heaviest = heaviest_load(directions(links_of(flow, sport, router)), flow, router, load)
        if heaviest < least:
            best, least = sport, heaviest
    return best
