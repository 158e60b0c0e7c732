"""Choosing source ports: spread a NIC's queue pairs over its ports and over the links behind them. Pure.

This is HPN's path selection in its first form (paper section 6.2, RePaC): the host knows where each source port leads,
so it picks ports whose paths share as little as possible. Where a path leads is asked through ``Router``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

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


def spread(flows: Sequence[FlowSpec], router: Router) -> Spread:
    """Give every flow source ports such that each NIC uses its ports in turn and no link is loaded needlessly.

    Greedy, in flow order; acknowledgements are spread over ports too but do not count as load.
    """
    load: Counter[_Direction] = Counter()
    taken: dict[str, set[int]] = {}
    turns: Counter[str] = Counter()
    chosen = []
    for flow in flows:
        sport = _best(flow, router, taken.setdefault(flow.src_nic, set()), turns[flow.src_nic], load)
        turns[flow.src_nic] += 1
        taken[flow.src_nic].add(sport)
        _add(load, flow, router.links(flow.src_nic, flow.dst_nic, sport))
        chosen.append(replace(flow, sport=sport))
    return _spread(_answers_in_turn(chosen, router, taken), load, router)


def in_turn(flows: Sequence[FlowSpec], router: Router) -> Spread:
    """Each NIC uses its ports in turn, for data and for acknowledgements; what lies behind them is left to hashes.

    So do adapters that give each new queue pair the next port (mlx5's round-robin port affinity under LAG).
    """
    taken: dict[str, set[int]] = {}
    turns: Counter[str] = Counter()
    chosen = []
    for flow in flows:
        used = taken.setdefault(flow.src_nic, set())
        port = turns[flow.src_nic] % router.ports(flow.src_nic)
        sport = next(_leading_to(port, flow.src_nic, flow.dst_ip, flow.sport, router, used), flow.sport)
        turns[flow.src_nic] += 1
        used.add(sport)
        chosen.append(replace(flow, sport=sport))
    return _spread(_answers_in_turn(chosen, router, taken), _loads(chosen, router), router)


def hashed(flows: Sequence[FlowSpec], router: Router) -> Spread:
    """The source ports that a RoCE stack draws (``traffic.flow.default_sport``); LAGs and switches hash as they do."""
    return _spread(flows, _loads(flows, router), router)


DISJOINT = "disjoint"

CHOICES: Mapping[str, Callable[[Sequence[FlowSpec], Router], Spread]] = {
    DISJOINT: spread,
    "in-turn": in_turn,
    "hash": hashed,
}
"""How source ports are chosen, by the word in a drill file."""


def _answers_in_turn(flows: Sequence[FlowSpec], router: Router, taken: dict[str, set[int]]) -> list[FlowSpec]:
    """The flows with acknowledgements that leave each NIC by its ports in turn."""
    found = list(flows)
    answers: Counter[str] = Counter()
    for at, flow in enumerate(found):
        used = taken.setdefault(flow.dst_nic, set())
        port = answers[flow.dst_nic] % router.ports(flow.dst_nic)
        ack_sport = next(_leading_to(port, flow.dst_nic, flow.src_ip, flow.ack_sport, router, used), flow.ack_sport)
        answers[flow.dst_nic] += 1
        used.add(ack_sport)
        found[at] = replace(flow, ack_sport=ack_sport)
    return found


def _loads(flows: Sequence[FlowSpec], router: Router) -> Counter[_Direction]:
    load: Counter[_Direction] = Counter()
    for flow in flows:
        _add(load, flow, router.links(flow.src_nic, flow.dst_nic, flow.sport))
    return load


def _add(load: Counter[_Direction], flow: FlowSpec, links: Sequence[str]) -> None:
    for way in _directions(links):
        load[way] += int(flow.goodput_bps)


def _spread(flows: Sequence[FlowSpec], load: Counter[_Direction], router: Router) -> Spread:
    worst = max(load, key=lambda way: load[way] / router.rate_bps(way[0]), default=("", True))
    return Spread(tuple(flows), worst[0], load[worst] / router.rate_bps(worst[0]) if worst[0] else 0.0)


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
