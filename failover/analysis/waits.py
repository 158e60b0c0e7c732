"""How long the processes that carry a failover out waited for a CPU: what a busy machine may have added to it. Pure.

Changes when the kernel tells more of who waited for whom. A failover is a chain of steps, of one process after another
(supervisor with LACP, LAG and path control; BIRD), and each wait of each of them may have been a link of that chain or
not. So the sum of all their waits is the most that the machine added, as far as the scheduler tells: time that a
hypervisor took away is told as running. Those that carry the traffic are no part of the chain; what they wait shows in
the packets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hpn.failover.analysis.hostload import Sample


@dataclass(frozen=True, slots=True)
class Waits:
    """Readings in order of time: ``at_ns`` (CLOCK_MONOTONIC), and the ns waited since the first, never falling.

    Both are as long, and empty where nothing is known: in virtual time nobody waits for a CPU.
    """

    at_ns: tuple[int, ...] = ()
    waited_ns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """ValueError when it is no such course."""
        if len(self.at_ns) != len(self.waited_ns) or list(self.at_ns) != sorted(self.at_ns):
            raise ValueError("readings are one number each, in order of time")

    def most_ms(self, start_ns: int, end_ns: int) -> float:
        """The most that was waited in [start, end], ms: from the reading before it to the one behind it."""
        if not self.at_ns:
            return 0.0
        last = len(self.at_ns) - 1
        before, behind = max(bisect_right(self.at_ns, start_ns) - 1, 0), min(bisect_left(self.at_ns, end_ns), last)
        return max(self.waited_ns[behind] - self.waited_ns[before], 0) / 1e6


NO_WAITS = Waits()
"""Nothing known, or nothing to wait for."""


def waits_of(samples: Sequence[Sample], pids: Collection[int]) -> Waits:
    """What those processes waited together, from sample to sample in which each was there."""
    if not samples:
        return NO_WAITS
    waited = [0]
    for first, last in pairwise(samples):
        both = first.own.keys() & last.own.keys() & set(pids)
        waited.append(waited[-1] + sum(last.own[pid].delay_ns - first.own[pid].delay_ns for pid in both))
    return Waits(tuple(sample.at_ns for sample in samples), tuple(waited))
