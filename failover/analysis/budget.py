"""Uncertainty interval of a measured figure and its components: one budget for every figure. Pure.

Changes when another part of the measurement turns out to make figures less certain. All times in ms. The possible
length of an outage is read from the packets around it. So a sender's period, bursts, pauses and slips count where and
as far as they matter:

    last received before   first missing            last missing   first received after
            t0                  t1        ...            t2                t3

The network failed for packets sent after t0 and at t1, and worked for those sent at t3. Each hole lasted at least t2 -
t1 and at most t3 - t0. Packets received in between end one hole and begin the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Interval(NamedTuple):
    """Values from ``low`` to ``high``, both included, in the figure's own unit; the true value is one of them."""

    low: float
    high: float

    @property
    def text(self) -> str:
        """Text for tables: '2.50..4.16'."""
        return f"{self.low:.2f}..{self.high:.2f}"

    def has(self, other: Interval) -> bool:
        """Return True if the two have a value in common."""
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True, slots=True)
class OutageBudget:
    """Bounds of the outage of one flow at one edge, and the parts that they are made of, ms.

    ``low_ms`` and ``high_ms`` also take in what either method says, because the two must not be told apart by a limit.
    """

    low_ms: float
    high_ms: float
    certain_ms: float  # between missing packets, by send time: it lasted that long
    possible_ms: float  # between the received packets around them; of a flow that lost nothing the largest gap
    machine_ms: float  # the noise floor: what this machine adds although nothing is wrong
    clock_ms: float  # reading the clock

    @property
    def interval(self) -> Interval:
        """Interval from ``low_ms`` to ``high_ms``."""
        return Interval(self.low_ms, self.high_ms)


def outage_budget(
    certain_ms: float, possible_ms: float, methods_ms: Sequence[float], machine_ms: float, clock_ms: float
) -> OutageBudget:
    """Return the budget of an outage whose methods (PLBM, TBM) measured ``methods_ms``; these may be empty."""
    reach = machine_ms + clock_ms
    low, high = min(certain_ms, *methods_ms), max(possible_ms, *methods_ms)
    return OutageBudget(max(low - reach, 0.0), high + reach, certain_ms, possible_ms, machine_ms, clock_ms)


def around(value: float, reach: float) -> Interval:
    """Return the interval of ``value`` plus or minus ``reach``; for a value of 0 or more it begins at 0 at least."""
    low = value - reach
    return Interval(max(low, 0.0) if value >= 0 else low, value + reach)


def late_by(value: float, late: float, clock: float) -> Interval:
    """Return the interval of a time stamped up to ``late`` too late, with a clock accuracy of ``clock``."""
    return Interval(max(value - late - clock, 0.0), value + clock)


def of_statistic(intervals: Iterable[Interval], statistic: Callable[[Sequence[float]], float]) -> Interval:
    """Return the interval of a statistic that increases with each of its values (largest, median, a rank)."""
    found = list(intervals)
    return Interval(statistic([one.low for one in found]), statistic([one.high for one in found]))
