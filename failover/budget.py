"""The interval that a measured figure stands for: what the measurement cannot tell apart. Pure.

Changes when another part of the measurement is found to make figures less certain.
"""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """All values from ``low`` to ``high``, both included, in the figure's own unit; the truth is one of them."""

    low: float
    high: float


def around(value: float, reach: float) -> Interval:
    """As far below ``value`` as above it, though no value of 0 or more is taken for one below 0."""
    low = value - reach
    return Interval(max(low, 0.0) if value >= 0 else low, value + reach)
