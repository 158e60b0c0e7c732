"""Mean of a figure over draws, with its 95 % interval, and its comparison with a paper's figure. Pure.

The interval is Student's t, which always contains the mean. Draws are few: of 400 samples of 12 (normal, log-normal
with sigma 0.5, three values) it held the true mean in 92 to 95 %, the BCa bootstrap of ``results.comparison`` in 88 to
97 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import atan, cos, pi, sin, sqrt
from statistics import fmean, stdev

CONFIDENCE = 0.95
LEAST_DRAWS = 2
"""Fewest draws: one has no spread."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean of ``draws`` values, and both ends of its interval; one value has none."""

    mean: float
    low: float
    high: float
    draws: int

    def holds(self, value: float) -> bool:
        """Return True if the value lies in the interval."""
        return self.low <= value <= self.high

    def text(self) -> str:
        """Return the estimate of a share as text: '+71.2% (95 %: +60.0 to +82.4%)', or '+0.1% (one run each)'."""
        if self.draws == 1:
            return f"{self.mean:+.1%} (one run each)"
        return f"{self.mean:+.1%} (95 %: {self.low * 100:+.1f} to {self.high:+.1%})"


@dataclass(frozen=True, slots=True)
class Band:
    """Range of values that say the same as the paper's figure, with its reason."""

    low: float
    high: float
    reason: str

    def __post_init__(self) -> None:
        """Raise ValueError for an empty range or without a reason."""
        if not self.low < self.high:
            raise ValueError(f"a band from {self.low} to {self.high} is empty")
        if not self.reason:
            raise ValueError(f"the band from {self.low} to {self.high} has no reason")

    def holds(self, found: Estimate) -> bool:
        """Return True if the whole interval lies within."""
        return self.low <= found.low and found.high <= self.high


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of draws with its interval. ValueError for fewer than two."""
    if len(values) < LEAST_DRAWS:
        raise ValueError(f"{len(values)} draws have no interval; it takes {LEAST_DRAWS}")
    mean = fmean(values)
    half = student(len(values) - 1) * stdev(values) / sqrt(len(values))
    return Estimate(mean, mean - half, mean + half, len(values))


def one_run(value: float) -> Estimate:
    """Return the value of two networks that were run once each, as no hash decides in them: it has no interval."""
    return Estimate(value, value, value, 1)


def says_the_same(found: Estimate, paper: float, band: Band | None = None) -> bool | None:
    """Return True if the whole interval lies in the band, or the paper's figure in the interval.

    None if the interval holds the paper's figure and no effect (0) alike.
    """
    if band is not None and band.holds(found):
        return True
    if not found.holds(paper):
        return False
    return None if found.holds(0.0) else True


def student(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the quantile of Student's t that the central ``confidence`` of values stays below, by bisection."""
    low, high = 0.0, 1.0
    while _central(high, freedom) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _central(middle, freedom) < confidence else (low, middle)
    return high


def _central(t: float, freedom: int) -> float:
    """Return the probability of a value between -t and t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    summed = sin(angle) * sum(_terms(cos(angle), freedom))
    return 2 / pi * (angle + summed) if freedom % 2 else summed


def _terms(cosine: float, freedom: int) -> Iterator[float]:
    """Yield the terms of the series, of which there are ``freedom // 2``."""
    odd = freedom % 2
    term = cosine if odd else 1.0
    for at in range(freedom // 2):
        yield term
        term *= cosine**2 * (2 * at + 1 + odd) / (2 * at + 2 + odd)
