"""Special handling of large fabrics: a separate process runs LACP, and routes are held back at the start.

Held means that BGP learns everything before the kernels get their routes, each route once.

A switch learns of a host from one neighbour after another, and each time its kernel is given the whole multipath route
again. That is prefixes times next hops in writes, and next hops squared in notifications, all under the machine's one
lock. So ToRs announce no host until LACP is up on every port, because each late host would be an update for all
switches. The ToRs' own routes go to their kernels when the switches above them are complete. Vendors hold routers in
the same way when they boot (FRR's update-delay, wait-for-convergence elsewhere). Only the start of a lab is held.
Afterwards routes follow each update, also in a switch that comes back from a crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from hpn.testbed.lab.expected_routes import NextHops, least
from hpn.testbed.routing.bgp import BgpDaemon

MANY_NEXT_HOPS = 50_000
"""Next hops of all routes of all switches; below that a lab is as fast without (measured)."""

_AT_ONCE = 4


def is_large(expected: Mapping[str, Mapping[str, NextHops]]) -> bool:
    """Return True if a lab with these routes (switch to prefix to next hops) counts as large."""
    return sum(least(ports) for routes in expected.values() for ports in routes.values()) >= MANY_NEXT_HOPS


class FibState:
    """State of one lab's FIBs: held until ``deliver``."""

    def __init__(self, *, held: bool) -> None:
        self.held = held

    async def deliver(self, daemons: Iterable[BgpDaemon]) -> None:
        """Make every daemon install its routes in its kernel. MachineError when one refuses."""
        self.held = False
        await _all([daemon.deliver for daemon in daemons])

    async def hear(self, daemons: Iterable[BgpDaemon]) -> None:
        """Make every ToR's daemon announce its hosts. MachineError when one refuses."""
        await _all([daemon.hear for daemon in daemons])


async def _all(orders: Iterable[Callable[[], None]]) -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        await asyncio.gather(*(loop.run_in_executor(pool, order) for order in orders))
