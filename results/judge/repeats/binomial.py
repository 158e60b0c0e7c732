"""Bounds on a failure rate from a number of runs: exact one-sided, Clopper and Pearson (1934). Pure.

Changes when another bound is needed. The upper bound is the rate at which at most 5 % of such series would have so few
failures; bisection inverts the binomial tail.
"""

from __future__ import annotations

import math

CONFIDENCE = 0.95
_HALVINGS = 60


def rate_at_most(failures: int, runs: int) -> float:
    """Return the upper bound of the failure rate, with CONFIDENCE; 1.0 if unknown. ValueError for an impossible series.

    No failure in n runs: 1 - 0.05 ** (1 / n), so 25.9 % for 10 runs and 4.95 % for 59.
    """
    _check(failures, runs)
    if failures == runs:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_most(failures, runs, middle) > 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def rate_at_least(failures: int, runs: int) -> float:
    """Return the lower bound of the failure rate, with CONFIDENCE; 0.0 if unknown. ValueError as above."""
    _check(failures, runs)
    return 1.0 - rate_at_most(runs - failures, runs)


def _check(failures: int, runs: int) -> None:
    if not 0 <= failures <= runs:
        raise ValueError(f"{failures} failures in {runs} runs")


def _at_most(failures: int, runs: int, rate: float) -> float:
    """Return the probability of at most ``failures`` failures; ``rate`` is between 0 and 1."""
    fail, keep = math.log(rate), math.log1p(-rate)
    return math.fsum(
        math.exp(math.lgamma(runs + 1) - math.lgamma(k + 1) - math.lgamma(runs - k + 1) + k * fail + (runs - k) * keep)
        for k in range(failures + 1)
    )
