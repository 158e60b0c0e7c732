"""Balancing by switches: choice among the next hops of a route, and how long a flow stays with it. Pure.

Without it a switch hashes a flow's addresses and ports (ECMP), and every packet of the flow takes one path. The
queue discipline of our guest kernel (testbed/vm/sch_mmu.c) can choose by itself: for each packet, or for each flowlet,
which is a flow's packets without a gap longer than ``gap_ms``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hpn.testbed.entries import Registry


class Balance(IntEnum):
    """Choice among the next hops of a route: enum balance_by of testbed/vm/sch_mmu.c."""

    BY_ECMP = 0
    BY_HASH = 1
    BY_RANDOM = 2
    BY_QUEUE = 3


@dataclass(frozen=True, slots=True)
class Balancer:
    """One way to balance. ``gap_ms``: default gap of the lab; None: it chooses for each packet."""

    name: str
    summary: str
    by: Balance
    gap_ms: float | None = None


BALANCERS = Registry(
    "way to balance",
    lambda each: each.name,
    [
        Balancer("spray", "each packet takes a random next hop", Balance.BY_RANDOM),
        Balancer("adaptive", "each packet takes the next hop with the shortest queue", Balance.BY_QUEUE),
        Balancer("flowlet", "a flow that paused takes a random next hop (LetFlow)", Balance.BY_RANDOM, 100.0),
        Balancer("adaptive-flowlet", "a flow that paused takes the shortest queue", Balance.BY_QUEUE, 100.0),
        Balancer("resilient", "a hash; flows move when their next hop leaves, not others", Balance.BY_HASH, 10_000.0),
    ],
    of=Balancer,
)
"""LetFlow: Vanini et al., NSDI 2017, with a gap of 500 us at 10 Gbit/s. 100 ms here are 100 us at scale 1000."""
