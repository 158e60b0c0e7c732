"""Paths of source ports: which ports of a queue pair lead where, and how loaded the links behind them are. Pure.

Changes when paths are found or weighed in another way.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

from hpn.traffic.flows.flow import ROCE_PORT, SPORT_MAX, SPORT_MIN, FlowSpec

Direction = tuple[str, bool]
"""A link, and True if it is taken upwards: a cable carries its rate each way."""


SEARCH = 256


class Router(Protocol):
    """Paths of packets in a lab without failures."""

    def ports(self, nic: str) -> int:
        """Return the number of member ports of a NIC's LAG."""

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        """Return the index of the member port that the LAG picks."""

    def links(self, src_nic: str, dst_nic: str, sport: int, bound: int | None = None) -> Sequence[str]:
        """Return the names of the links on the path; ``bound``: port of the NIC that the queue pair is bound to."""

    def rate_bps(self, link: str) -> int:
        """Return the emulated rate of a link."""


def heaviest_load(ways: Sequence[Direction], flow: FlowSpec, router: Router, load: Counter[Direction]) -> float:
    """Return the load of the most loaded link of a path, with this flow on it."""
    return max(((load[way] + flow.goodput_bps) / router.rate_bps(way[0]) for way in ways), default=0.0)


def drawn_ports(draw: random.Random) -> Iterator[int]:
    """Yield random source ports without end."""
    while True:
        yield draw.randint(SPORT_MIN, SPORT_MAX)


def directions(links: Sequence[str]) -> list[Direction]:
    """Return the links of a healthy lab's path with their directions: it climbs for its first half, then descends."""
    return [(link, 2 * at < len(links)) for at, link in enumerate(links)]


def port_of(flow: FlowSpec, sport: int, router: Router) -> int:
    """Return the port of its NIC that a flow's data would leave by from a source port; a bound one's stays."""
    return router.port_for(flow.src_nic, flow.dst_ip, sport, ROCE_PORT) if flow.port is None else flow.port


def links_of(flow: FlowSpec, sport: int, router: Router) -> Sequence[str]:
    """Return the links on the path of a flow's data from a source port."""
    return router.links(flow.src_nic, flow.dst_nic, sport, flow.port)


def wanted_port(flow: FlowSpec, turn: int, router: Router) -> int:
    """Return the port of its NIC for the ``turn``-th flow, if ports are taken in turn; that of a bound flow."""
    return turn % router.ports(flow.src_nic) if flow.port is None else flow.port


def leading_to(port: int, flow: FlowSpec, router: Router, taken: set[int]) -> Iterator[int]:
    """Yield free source ports, from ``flow``'s own on, by which its data leaves its NIC by ``port``."""
    width = SPORT_MAX - SPORT_MIN + 1
    for step in range(SEARCH):
        sport = SPORT_MIN + (flow.sport - SPORT_MIN + step) % width
        if sport not in taken and port_of(flow, sport, router) == port:
            yield sport
