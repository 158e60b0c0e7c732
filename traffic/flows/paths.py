"""Source port selection: spread a NIC's queue pairs over its ports and over the links behind them. Pure.

This is HPN's path selection in its first form (paper section 6.2, RePaC). The host knows the path of each source port,
so it picks ports whose paths share as few links as possible. ``Router`` maps source ports to paths.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import islice

from hpn.testbed.entries import Registry
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


@dataclass(frozen=True, slots=True)
class Spread:
    """The flows with their chosen source ports, and the most loaded link as a share of its rate."""

    flows: tuple[FlowSpec, ...]
    worst_link: str
    worst_load: float


class _InTurn:
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


class _Disjoint(_InTurn):
    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        return _best(flow, self.router, used, turn, self.load)


class _LinkDisjoint(_InTurn):
    """Source ports whose paths, from one NIC to another, share no link between switches while paths last."""

    def __init__(self, router: Router) -> None:
        super().__init__(router)
        self._crossed: dict[tuple[str, str], Counter[Direction]] = {}

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
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


class _Anew(_LinkDisjoint):
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
        return leading_to(port_of(flow, flow.sport, self.router), flow, self.router, used)

    def _put(self, flow: FlowSpec) -> None:
        self._taken.setdefault(flow.src_nic, set()).add(flow.sport)
        self._weigh(flow, 1)
        ways = directions(links_of(flow, flow.sport, self.router))[1:-1]
        self._crossed.setdefault((flow.src_nic, flow.dst_nic), Counter()).update(ways)


class _Hashed(_InTurn):
    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        return flow.sport

    def answered(self, flow: FlowSpec) -> FlowSpec:
        return flow


class _Drawn(_InTurn):
    """Random source ports; ``seed`` decides. The draw of a queue pair is independent of all others."""

    def __init__(self, router: Router, seed: int) -> None:
        super().__init__(router)
        self._seed = seed

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        draw = random.Random(f"{self._seed} {flow.id} {flow.src_nic} {flow.dst_nic}")
        return next(port for port in drawn_ports(draw) if port not in used)

    def answered(self, flow: FlowSpec) -> FlowSpec:
        draw = random.Random(f"{self._seed} {flow.id} {flow.dst_nic} {flow.src_nic} acknowledged")
        return replace(flow, ack_sport=next(drawn_ports(draw)))


class _DrawnOnce(_Drawn):
    """One source port for all queue pairs between two NICs: ``drawn`` gives it to the only one of a connection."""

    def __init__(self, router: Router, seed: int) -> None:
        super().__init__(router, seed)
        self._connections: dict[tuple[str, str], int] = {}

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        number = self._connections.setdefault((flow.src_nic, flow.dst_nic), len(self._connections))
        return super().sport(replace(flow, id=number), turn, set())


class _Pinned(_InTurn):
    """Source ports that lead by the uplink whose turn is the destination's: hosts of a rack have one each."""

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        ports = islice(leading_to(wanted_port(flow, turn, self.router), flow, self.router, used), MOST_CANDIDATES)
        by_uplink = {links_of(flow, port, self.router)[1]: port for port in ports}
        destination = int(ip_address(flow.dst_ip)) - 1  # a rack's hosts are numbered from 1
        return by_uplink[sorted(by_uplink)[destination % len(by_uplink)]]


def spread(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Assign source ports so that each NIC uses its ports in turn and no link is loaded needlessly.

    Greedy, in flow order. Acknowledgements are spread over ports too but do not count as load. Each of ``later`` is a
    set of replacement flows that begin together; the flows they replace no longer count as load. The worst load is that
    of any time.
    """
    return _chosen(_Disjoint(router), flows, later)


def in_turn(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Assign each NIC's ports in turn, for data and for acknowledgements; hashing decides the path behind them.

    Adapters that give each new queue pair the next port do the same (mlx5's round-robin port affinity under LAG).
    """
    return _chosen(_InTurn(router), flows, later)


def hashed(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Assign the source ports that a RoCE stack picks (``flow.default_sport``); LAGs and switches hash them."""
    return _chosen(_Hashed(router), flows, later)


def link_disjoint(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Assign source ports so that paths from one NIC to another share no link between switches.

    HPN's library does so for the queue pairs of a connection (paper section 6.2). If there are fewer paths than queue
    pairs, they share as few links as possible. Of equally good paths, the one with the least load is taken.
    """
    return _chosen(_LinkDisjoint(router), flows, later)


def link_disjoint_anew(
    staying: Sequence[FlowSpec], moving: Sequence[FlowSpec], homes: Mapping[int, int], router: Router
) -> Iterator[FlowSpec]:
    """Yield ``moving``, in any order, with the best source ports for the present state.

    A flow that would be alone on its home path (``homes``: source ports by flow) reverts to it. A flow that is alone on
    its present path stays. The others choose again. ``router`` returns no links where packets do not arrive. No flow
    changes the port of its NIC.
    """
    choosing, left = _Anew(router, staying), list(moving)
    for sports in (homes, {flow.id: flow.sport for flow in moving}):
        for flow in tuple(left):
            if choosing.fits(flow, sports[flow.id]):
                left.remove(flow)
                yield replace(flow, sport=sports[flow.id])
    for flow in left:
        yield choosing.again(flow)


def drawn_again(flow: FlowSpec, fits: Callable[[int], bool], seed: int, again: int) -> int | None:
    """Return another source port that ``fits``, drawn by ``seed`` for the ``again``-th time (from 1); None if there is
    none."""
    draw = random.Random(f"{seed} {flow.id} {flow.src_nic} {flow.dst_nic} again {again}")
    return next(filter(fits, islice(drawn_ports(draw), SEARCH)), None)


def drawn(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = (), seed: int = 0) -> Spread:
    """Assign random source ports by ``seed``: each queue pair adds entropy, and switches hash it.

    Meta's E-ECMP does the same: more queue pairs, and switches that hash what differs between them (SIGCOMM 2024,
    section 5).
    """
    return _chosen(_Drawn(router, seed), flows, later)


def drawn_once(
    flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = (), seed: int = 0
) -> Spread:
    """Assign one random source port to all queue pairs between two NICs: no switch can tell them apart."""
    return _chosen(_DrawnOnce(router, seed), flows, later)


def pinned(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Assign source ports by whose path leaves the ToR by the uplink of the destination's index in its rack.

    Meta's first scheme (SIGCOMM 2024, section 4): static, and blind to other flows. After a failure hashes decide.
    """
    return _chosen(_Pinned(router), flows, later)


Choose = Callable[[Sequence[FlowSpec], Router, Sequence[Sequence[FlowSpec]], int], Spread]


@dataclass(frozen=True, slots=True)
class SourcePorts:
    """An algorithm for choosing source ports.

    ``choose`` takes the flows, a router, replacement flows that begin later, and a seed for random choices.
    """

    name: str
    choose: Choose
    follows_ecmp: bool  # chosen again for a job's queue pairs when ECMP groups of their ToR change
    keeps_links_free: bool  # a link loaded beyond its rate is an error of the drill, not the subject
    takes_ports_in_turn: bool  # the k-th queue pair of a connection leaves by port k, modulo their number


def _seedless(choose: Callable[[Sequence[FlowSpec], Router, Sequence[Sequence[FlowSpec]]], Spread]) -> Choose:
    """Return a chooser that ignores the seed."""
    return lambda flows, router, later, _seed: choose(flows, router, later)


CHOICES: Registry[SourcePorts] = Registry(
    "choice of source ports",
    lambda choice: choice.name,
    (
        SourcePorts("disjoint", _seedless(spread), False, True, True),
        SourcePorts("link-disjoint", _seedless(link_disjoint), True, True, True),
        SourcePorts("in-turn", _seedless(in_turn), False, False, True),
        SourcePorts("hash", _seedless(hashed), False, False, False),
        SourcePorts("drawn", drawn, False, False, False),
        SourcePorts("drawn-once", drawn_once, False, False, False),
        SourcePorts("pinned", _seedless(pinned), False, False, True),
    ),
    of=SourcePorts,
)
"""Source port algorithms, by their name in a drill file."""


def _chosen(choosing: _InTurn, flows: Sequence[FlowSpec], later: Sequence[Sequence[FlowSpec]]) -> Spread:
    choosing.add(flows)
    for stand_ins in later:
        choosing.drop({flow.replaces for flow in stand_ins})
        choosing.add(stand_ins)
    return Spread(tuple(choosing.chosen), *choosing.worst)


def _best(flow: FlowSpec, router: Router, taken: set[int], turn: int, load: Counter[Direction]) -> int:
    best, least = flow.sport, float("inf")
    candidates = leading_to(wanted_port(flow, turn, router), flow, router, taken)
    for _, sport in zip(range(_CANDIDATES), candidates, strict=False):
        heaviest = heaviest_load(directions(links_of(flow, sport, router)), flow, router, load)
        if heaviest < least:
            best, least = sport, heaviest
    return best
