"""Choosing source ports: spread a NIC's queue pairs over its ports and over the links behind them. Pure.

This is HPN's path selection in its first form (paper section 6.2, RePaC): the host knows where each source port leads,
so it picks ports whose paths share as little as possible. Where a path leads is asked through ``Router``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from testbed.entries import Registry
from traffic.flow import ROCE_PORT, SPORT_MAX, SPORT_MIN, FlowSpec

_Direction = tuple[str, bool]
"""A link, and whether it is taken upwards: a cable carries its rate each way."""

_CANDIDATES = 6
_SEARCH = 256


class Router(Protocol):
    """Where packets go, on a healthy lab."""

    def ports(self, nic: str) -> int:
        """Member ports of a NIC's LAG."""

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        """Index of the member port the LAG picks."""

    def links(self, src_nic: str, dst_nic: str, sport: int) -> Sequence[str]:
        """Names of the links on the path."""

    def rate_bps(self, link: str) -> int:
        """The emulated rate of a link."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The flows with their chosen source ports, and the most loaded link as a share of its rate."""

    flows: tuple[FlowSpec, ...]
    worst_link: str
    worst_load: float


class _InTurn:
    """Source ports given so far, and what each link carries in each direction."""

    def __init__(self, router: Router) -> None:
        self.chosen: list[FlowSpec] = []
        self.worst = ("", 0.0)
        self.router = router
        self.load: Counter[_Direction] = Counter()
        self._taken: dict[str, set[int]] = {}
        self._turns: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()

    def add(self, flows: Sequence[FlowSpec]) -> None:
        """Choose for flows that run beside those there are."""
        self.chosen += [self.answered(flow) for flow in [self._sent(flow) for flow in flows]]
        for way, bps in self.load.items():
            share = bps / self.router.rate_bps(way[0])
            if share > self.worst[1]:
                self.worst = (way[0], share)

    def drop(self, flows: Collection[int | None]) -> None:
        """Flows of these ids have ended; their ports stay theirs."""
        for flow in self.chosen:
            if flow.id in flows:
                self._weigh(flow, -1)

    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        """The source port of its data, when it is the ``turn``-th flow of its NIC."""
        port = turn % self.router.ports(flow.src_nic)
        return next(_leading_to(port, flow.src_nic, flow.dst_ip, flow.sport, self.router, used), flow.sport)

    def answered(self, flow: FlowSpec) -> FlowSpec:
        """The flow with the source port of its acknowledgements."""
        used = self._taken.setdefault(flow.dst_nic, set())
        port = self._answers[flow.dst_nic] % self.router.ports(flow.dst_nic)
        ports = _leading_to(port, flow.dst_nic, flow.src_ip, flow.ack_sport, self.router, used)
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
        for way in _directions(self.router.links(flow.src_nic, flow.dst_nic, flow.sport)):
            self.load[way] += sign * int(flow.goodput_bps)


class _Disjoint(_InTurn):
    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        return _best(flow, self.router, used, turn, self.load)


class _Hashed(_InTurn):
    def sport(self, flow: FlowSpec, turn: int, used: set[int]) -> int:
        return flow.sport

    def answered(self, flow: FlowSpec) -> FlowSpec:
        return flow


def spread(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Give every flow source ports such that each NIC uses its ports in turn and no link is loaded needlessly.

    Greedy, in flow order; acknowledgements are spread over ports too but do not count as load. Each of ``later`` are
    stand-ins that begin at one instant: what they replace weighs nothing by then. The worst load is that of any time.
    """
    return _chosen(_Disjoint(router), flows, later)


def in_turn(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Each NIC uses its ports in turn, for data and for acknowledgements; what lies behind them is left to hashes.

    So do adapters that give each new queue pair the next port (mlx5's round-robin port affinity under LAG).
    """
    return _chosen(_InTurn(router), flows, later)


def hashed(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """The source ports that a RoCE stack draws (``traffic.flow.default_sport``); LAGs and switches hash as they do."""
    return _chosen(_Hashed(router), flows, later)


@dataclass(frozen=True, slots=True)
class SourcePorts:
    """A way to choose source ports. ``choose``: for the flows, by a router, and for stand-ins that begin later."""

    name: str
    choose: Callable[[Sequence[FlowSpec], Router, Sequence[Sequence[FlowSpec]]], Spread]
    keeps_links_free: bool  # a link that it loads beyond its rate is a mistake of the drill, not what is to be shown


CHOICES: Registry[SourcePorts] = Registry(
    "choice of source ports",
    lambda choice: choice.name,
    (
        SourcePorts("disjoint", spread, True),
        SourcePorts("in-turn", in_turn, False),
        SourcePorts("hash", hashed, False),
    ),
    of=SourcePorts,
)
"""How source ports are chosen, by the word in a drill file."""


def _chosen(choosing: _InTurn, flows: Sequence[FlowSpec], later: Sequence[Sequence[FlowSpec]]) -> Spread:
    choosing.add(flows)
    for stand_ins in later:
        choosing.drop({flow.replaces for flow in stand_ins})
        choosing.add(stand_ins)
    return Spread(tuple(choosing.chosen), *choosing.worst)


def _best(flow: FlowSpec, router: Router, taken: set[int], turn: int, load: Counter[_Direction]) -> int:
    port = turn % router.ports(flow.src_nic)
    best, least = flow.sport, float("inf")
    candidates = _leading_to(port, flow.src_nic, flow.dst_ip, flow.sport, router, taken)
    for _, sport in zip(range(_CANDIDATES), candidates, strict=False):
        ways = _directions(router.links(flow.src_nic, flow.dst_nic, sport))
        heaviest = max(((load[way] + flow.goodput_bps) / router.rate_bps(way[0]) for way in ways), default=0.0)
        if heaviest < least:
            best, least = sport, heaviest
    return best


def _directions(links: Sequence[str]) -> list[_Direction]:
    """The links of a path, each in the direction it is taken: a path climbs for its first half and descends then."""
    return [(link, 2 * at < len(links)) for at, link in enumerate(links)]


def _leading_to(port: int, nic: str, dst_ip: str, start: int, router: Router, taken: set[int]) -> Iterator[int]:
    """Free source ports from ``start`` on that the LAG of ``nic`` maps to ``port``."""
    width = SPORT_MAX - SPORT_MIN + 1
    for step in range(_SEARCH):
        sport = SPORT_MIN + (start - SPORT_MIN + step) % width
        if sport not in taken and router.port_for(nic, dst_ip, sport, ROCE_PORT) == port:
            yield sport
