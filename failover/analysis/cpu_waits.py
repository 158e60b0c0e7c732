"""CPU waiting time of the processes that carry out a failover: the most that a busy machine may have added to it. Pure.

Changes when the kernel reports more about waiting. A failover is a chain of steps of several processes (supervisor with
LACP, LAG and path control; BIRD). Each wait of each process may or may not have been part of that chain. So the sum of
all their waits is the most that the machine added, as far as the scheduler reports it: time that a hypervisor took away
counts as running. Traffic processes are not part of the chain; their waits show in the packets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hpn.failover.analysis.hostload import Sample


@dataclass(frozen=True, slots=True)
class Waits:
    """Readings in order of time: ``at_ns`` (CLOCK_MONOTONIC), and the ns waited since the first, never decreasing.

    Both have the same length, and are empty if nothing is known: in virtual time no process waits for a CPU.
    """

    at_ns: tuple[int, ...] = ()
    waited_ns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the readings. ValueError when they are inconsistent."""
        if len(self.at_ns) != len(self.waited_ns) or list(self.at_ns) != sorted(self.at_ns):
            raise ValueError("readings are one number each, in order of time")

    def most_ms(self, start_ns: int, end_ns: int) -> float:
        """Return the longest possible wait in [start, end], ms: from the reading before it to the one after it."""
        if not self.at_ns:
            return 0.0
        last = len(self.at_ns) - 1
        before, behind = max(bisect_right(self.at_ns, start_ns) - 1, 0), min(bisect_left(self.at_ns, end_ns), last)
        return max(self.waited_ns[behind] - self.waited_ns[before], 0) / 1e6


NO_WAITS = Waits()
"""No readings, or no waits."""


def waits_of(samples: Sequence[Sample], pids: Collection[int]) -> Waits:
    """Return the total waits of those processes, between samples in which each process exists."""
    if not samples:
        return NO_WAITS
    waited = [0]
    for first, last in pairwise(samples):
        both = first.own.keys() & last.own.keys() & set(pids)
        waited.append(waited[-1] + sum(last.own[pid].delay_ns - first.own[pid].delay_ns for pid in both))
    return Waits(tuple(sample.at_ns for sample in samples), tuple(waited))
