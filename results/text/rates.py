"""Bit rates with one unit for all that stand together: '10.5 to 24.7 Mbit/s', never two of them. Pure.

Changes when rates are written otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from failover.analysis.words import plain

_UNITS = ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"))
_DIGITS = 4


def unit_of(rates_bps: Iterable[float]) -> tuple[float, str]:
    """What to divide all of them by, and the unit that they are in then: the one that suits the largest."""
    most = max((abs(bps) for bps in rates_bps if math.isfinite(bps)), default=0.0)
    return next(((factor, unit) for factor, unit in _UNITS if most >= factor), (1.0, "bit/s"))


def in_unit(bps: float, factor: float) -> str:
    """Four digits, all before the point, without an exponent."""
    return plain(bps / factor, _DIGITS)
