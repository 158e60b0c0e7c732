"""Paths of flows as a fault comes: they are recorded shortly before each time of a run's timeline."""

from __future__ import annotations

from hpn.failover.inject.injector import Injector
from hpn.scenarios.run.queue_pairs_on_lab import LabQueuePairs

_LOOK_NS = 100_500_000
"""Lead time before an edge and before the end at which paths are recorded, when queue pairs have settled.

Between edges closer than this no paths are recorded. Half a millisecond off the senders' ticks: to trace every flow
takes tens of us, by which packets due meanwhile would leave late.
"""
_ROUNDED_NS = 1_000_000


async def look(traffic: LabQueuePairs, injector: Injector, start_ns: int, before_ns: int) -> None:
    """Sleep until shortly before a time of the timeline, ``before_ns`` after the start, and record the paths.

    Without effect when it has passed, or nobody knows the paths. Of a time that is no whole ms, sleep until that very
    time: waking up earlier would move other timers, which asyncio rounds to 1 ms. It reads no clock, so that what
    follows a fault is the same whenever the next one is.
    """
    edges, due_ns = injector.edges, start_ns + before_ns
    at_ns = due_ns if before_ns % _ROUNDED_NS else due_ns - _LOOK_NS
    since_ns = edges[-1].inject_after_ns if edges else start_ns
    if not traffic.knows_paths or since_ns + (_LOOK_NS if at_ns == due_ns else 0) >= at_ns:
        return
    await traffic.until_exactly(at_ns)
    await traffic.look(edges[-1].label if edges else "healthy", len(edges), at_ns)
