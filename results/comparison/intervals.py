"""Intervals of the difference between two groups of runs: BCa bootstrap of medians and means. Pure. Imports numpy.

Changes when another statistic is estimated. The interval is bias-corrected and accelerated (Efron 1987), with 10,000
draws from a fixed seed, so it is repeatable. A value is a span; that of a lower bound has no upper end. Statistics are
computed for the minimum and the maximum of all values, and the result is the range between them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hpn.results.judge.repeats.bootstrap import CONFIDENCE, RESAMPLES, SEED

Numbers = npt.NDArray[np.float64]
_NORMAL = NormalDist()
_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Span:
    """Range of possible values; the ends are equal if the value is known, and infinite if there is no bound."""

    low: float
    high: float

    @property
    def known(self) -> bool:
        """True if it is one finite number."""
        return self.low == self.high and math.isfinite(self.low)


def median(values: Numbers) -> Numbers:
    """Return the median over the last axis, or the mean of the middle two; infinite values are allowed."""
    ordered = np.sort(values, axis=-1)
    size = values.shape[-1]
    middle: Numbers = (ordered[..., (size - 1) // 2] + ordered[..., size // 2]) / 2
    return middle


def mean(values: Numbers) -> Numbers:
    """Return the arithmetic mean over the last axis."""
    average: Numbers = values.mean(axis=-1)
    return average


Over = Callable[[Numbers], Numbers]
"""A statistic over the last axis."""


def paired(first: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """Return the difference of each pair, other minus first."""
    return [Span(two.low - one.high, two.high - one.low) for one, two in zip(first, other, strict=True)]


def statistic_of(pairs: Sequence[Span], over: Over) -> Span:
    """Return the statistic of the differences of pairs."""
    ends = _ends(pairs)
    return Span(float(over(ends.low)), float(over(ends.high)))


def difference_of(first: Sequence[Span], other: Sequence[Span], over: Over) -> Span:
    """Return the statistic of the other group minus that of the first."""
    one, two = _ends(first), _ends(other)
    return Span(float(over(two.low) - over(one.high)), float(over(two.high) - over(one.low)))


def interval_of_pairs(pairs: Sequence[Span], over: Over) -> Span:
    """Return the 95 % interval of the statistic of differences of pairs."""
    ends = _ends(pairs)
    return _between(lambda high: bca((ends.high if high else ends.low,), over), pairs)


def interval_of_groups(first: Sequence[Span], other: Sequence[Span], over: Over) -> Span:
    """Return the 95 % interval of the difference of the statistic of two groups."""
    one, two = _ends(first), _ends(other)

    def at(high: bool) -> Span:
        return bca((one.low, two.high) if high else (one.high, two.low), over)

    return _between(at, [*first, *other])


def is_degenerate(samples: Sequence[Sequence[Span]]) -> bool:
    """Return True if one value makes up more than half of each sample: BCa of the median is then undefined."""
    known = all(each.known for of in samples for each in of)
    return known and all(max(Counter(of).values()) > len(of) / 2 for of in samples)


def bca(samples: Sequence[Numbers], over: Over, resamples: int = RESAMPLES) -> Span:
    """Return the interval of a statistic of one sample, or of that of the second minus that of the first."""
    drawn, theta = np.sort(_drawn(samples, over, resamples)), float(_differ([over(each) for each in samples]))
    below = (np.mean(drawn < theta) + np.mean(drawn <= theta)) / 2
    least = 0.5 / resamples
    bias = _NORMAL.inv_cdf(min(max(float(below), least), 1 - least))
    faster = _acceleration(samples, over)
    shares = []
    for tail in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2):
        moved = bias + _NORMAL.inv_cdf(tail)
        shares.append(_NORMAL.cdf(bias + moved / (1 - faster * moved)))
    low, high = np.quantile(drawn, shares, method="inverted_cdf")
    return Span(float(low), float(high))


def _drawn(samples: Sequence[Numbers], over: Over, resamples: int) -> Numbers:
    random = np.random.default_rng(SEED)
    each = max(1, _AT_ONCE // max(map(len, samples)))
    parts = []
    for done in range(0, resamples, each):
        size = min(each, resamples - done)
        again = [over(sample[random.integers(0, len(sample), (size, len(sample)))]) for sample in samples]
        parts.append(_differ(again))
    return np.concatenate(parts)


def _differ(of: Sequence[Numbers]) -> Numbers:
    return of[0] if len(of) == 1 else of[1] - of[0]


def _acceleration(samples: Sequence[Numbers], over: Over) -> float:
    """Return the acceleration from leaving out each value once; 0, which only corrects the bias, if undefined."""
    moves = [_moves(each) * (1 if at or len(samples) == 1 else -1) for at, each in enumerate(map(_left(over), samples))]
    most = max(float(np.abs(each).max()) for each in moves)
    if not most or not math.isfinite(most):
        return 0.0
    cubes = sum(float(((each / most) ** 3).sum()) / len(each) ** 3 for each in moves)
    squares = sum(float(((each / most) ** 2).sum()) / len(each) ** 2 for each in moves)
    return float(cubes / (6 * squares**1.5))


def _left(over: Over) -> Callable[[Numbers], Numbers]:
    """Return a function that gives the statistic of a sample without each of its values."""

    def left(sample: Numbers) -> Numbers:
        size = len(sample)
        return over(sample[np.nonzero(~np.eye(size, dtype=bool))[1].reshape(size, size - 1)])

    return left


def _moves(found: Numbers) -> Numbers:
    """Return each value's influence on the statistic; infinite if unknown."""
    if not np.isfinite(found).all():
        return np.full(len(found), math.inf)
    moved: Numbers = (len(found) - 1) * (found.mean() - found)
    return moved


@dataclass(frozen=True, slots=True)
class _Ends:
    low: Numbers
    high: Numbers


def _ends(of: Sequence[Span]) -> _Ends:
    return _Ends(np.array([each.low for each in of]), np.array([each.high for each in of]))


def _between(at: Callable[[bool], Span], values: Sequence[Span]) -> Span:
    """Return the span from the low end for minimum values to the high end for maximum ones."""
    low = at(False)
    return low if all(each.known for each in values) else Span(low.low, at(True).high)
