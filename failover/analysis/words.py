"""Counts and times in the words that sentences about a run use. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
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
    """Rounded up to three digits, for what a time does not exceed: '0.65 ms', '4.46 s'."""
    return "an unknown time" if value is None else _ms(value, lambda scaled: math.ceil(scaled - 1e-6))


def about_ms(value: float, *, at_least: bool = False) -> str:
    """To the nearest of three digits, as tables have it, or rounded down for what a time is at least."""
    return _ms(value, (lambda scaled: math.floor(scaled + 1e-6)) if at_least else round)


def _ms(value: float, whole: Callable[[float], int]) -> str:
    if value >= 1000:
        return f"{whole(value / 10) / 100:,.2f} s"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{whole(value * 10**digits) / 10**digits:.{digits}f} ms"
