"""What is done otherwise in large fabrics: a process of its own speaks LACP, and they start with their FIBs held.

Held: BGP hears everything before the kernels are told, each route once.

A switch hears of a host from each neighbour, one after another, and each time its kernel is given the whole multipath
route anew: prefixes times next hops in writes, next hops squared in what they say, all under the one lock of the
machine. So ToRs announce no host until LACP carries every port, for each that comes up late would be news to all, and
what they hear goes to their kernels when the switches above them have it all. Vendors hold routers alike when they boot
(FRR's update-delay, wait-for-convergence elsewhere). Only the start of a lab is held; afterwards, also in a switch that
comes back from a crash, routes follow each update.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from hpn.testbed.routing.bgp import BgpDaemon

MANY_NEXT_HOPS = 50_000
"""Of all routes of all switches; below that a lab is as fast without (measured)."""

_AT_ONCE = 4


def is_large(expected: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether a lab with these routes (switch to prefix to next hops) is large enough."""
    return sum(sum(hops.values()) for hops in expected.values()) >= MANY_NEXT_HOPS


class Held:
    """Whether the FIBs of one lab are held, until ``deliver``."""

    def __init__(self, *, held: bool) -> None:
        self.held = held

    async def deliver(self, daemons: Iterable[BgpDaemon]) -> None:
        """Have every daemon tell its kernel what it has heard. MachineError when one refuses."""
        self.held = False
        await _all([daemon.deliver for daemon in daemons])

    async def hear(self, daemons: Iterable[BgpDaemon]) -> None:
        """Have every ToR's daemon announce its hosts. MachineError when one refuses."""
        await _all([daemon.hear for daemon in daemons])


async def _all(orders: Iterable[Callable[[], None]]) -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        await asyncio.gather(*(loop.run_in_executor(pool, order) for order in orders))
