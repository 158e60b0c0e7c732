"""Counts and times in the words that sentences about a run use. Pure."""

from __future__ import annotations

import math
from decimal import Decimal


def queue_pairs(count: int) -> str:
    """'80 queue pairs'."""
    return f"{count:,} queue pair{'s' * (count != 1)}"


def flows(count: int) -> str:
    """'1 flow'."""
    return f"{count:,} flow{'s' * (count != 1)}"


def many(count: int, what: str) -> str:
    """'1 run', '1,200 runs'."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def packets(count: int) -> str:
    """'1,294 packets'."""
    return f"{count:,} packet{'s' * (count != 1)}"


def number(value: float) -> str:
    """A count or a share: '11,740', '45', '99.96'; four digits, all before the point, never an exponent."""
    return f"{value:,.0f}" if 1000 <= abs(value) < math.inf else plain(value, 4)


def plain(value: float, digits: int = 3) -> str:
    """A time: '0.65', '2.5', '1943'; so many digits, all before the point, and unlike '%g' never an exponent."""
    if 10 ** (digits - 1) <= abs(value) < math.inf:
        return f"{value:.0f}"
    return f"{Decimal(f'{value:.{digits}g}'):f}" if math.isfinite(value) else f"{value:g}"


def in_ms(value: float | None) -> str:
    """Rounded up to three digits: '0.65 ms', '4.46 s'."""
    if value is None:
        return "an unknown time"
    if value >= 1000:
        return f"{math.ceil(value / 10 - 1e-9) / 100:,.2f} s"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{math.ceil(value * 10**digits - 1e-6) / 10**digits:.{digits}f} ms"
