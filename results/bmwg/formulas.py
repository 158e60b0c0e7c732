"""Formulas of draft-calabria-bmwg-ai-fabric-training-bench and of its terminology draft. Pure.

Changes when the drafts define a figure in another way. Sizes in bytes, times in seconds, rates in bit/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

ALGO_FACTORS = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0, "all-to-all": 1.0}
"""Multiples of (n - 1) / n that the terminology draft fixes, whatever algorithm runs."""


def algo_factor(kind: str, participants: int) -> float:
    """Return the draft's algo_factor. KeyError for a collective that it does not name."""
    return ALGO_FACTORS[kind] * (participants - 1) / participants


def busbw(size: float, factor: float, seconds: float) -> float:
    """Return BusBW of one accelerator: size x factor / time."""
    return 8 * size * factor / seconds


def roofline(compute_s: float, size: float, factor: float, line_rate: float) -> float:
    """Return Roofline JCT of one iteration: compute, then the data at the accelerator's line rate."""
    return compute_s + 8 * size * factor / line_rate


def max_mean_ratio(loads: Sequence[float]) -> float | None:
    """Return MMR: the most loaded of parallel links over their mean; None without load."""
    return max(loads) / fmean(loads) if loads and sum(loads) else None


def fairness(loads: Sequence[float]) -> float | None:
    """Return Jain's Fairness Index (JFI); None without load."""
    squares = sum(load * load for load in loads)
    return sum(loads) ** 2 / (len(loads) * squares) if squares else None


def variation(values: Sequence[float]) -> float | None:
    """Return the coefficient of variation, standard deviation over mean; None for fewer than two values."""
    mean = fmean(values) if values else 0.0
    return pstdev(values) / mean if len(values) > 1 and mean else None
