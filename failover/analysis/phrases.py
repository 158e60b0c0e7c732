"""Counts and times as words for sentences about a run. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal


def queue_pairs(count: int) -> str:
    """Return '80 queue pairs'."""
    return f"{count:,} queue pair{'s' * (count != 1)}"


def flows(count: int) -> str:
    """Return '1 flow'."""
    return f"{count:,} flow{'s' * (count != 1)}"


def many(count: int, what: str) -> str:
    """Return '1 run', '1,200 runs'."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def packets(count: int) -> str:
    """Return '1,294 packets'."""
    return f"{count:,} packet{'s' * (count != 1)}"


def number(value: float) -> str:
    """Return a count or a share: '11,740', '45', '99.96'; four digits, all before the point, never an exponent."""
    return f"{value:,.0f}" if 1000 <= abs(value) < math.inf else plain(value, 4)


def plain(value: float, digits: int = 3) -> str:
    """Return a time with ``digits`` digits, all before the point: '0.65', '2.5', '1943'; never an exponent, unlike
    '%g'."""
    if 10 ** (digits - 1) <= abs(value) < math.inf:
        return f"{value:.0f}"
    return f"{Decimal(f'{value:.{digits}g}'):f}" if math.isfinite(value) else f"{value:g}"


def in_ms(value: float | None) -> str:
    """Return a time rounded up to three digits, as an upper bound: '0.65 ms', '4.46 s'."""
    return "an unknown time" if value is None else _ms(value, lambda scaled: math.ceil(scaled - 1e-6))


def about_ms(value: float, *, at_least: bool = False) -> str:
    """Return a time to the nearest of three digits, as in tables, or rounded down as a lower bound."""
    return _ms(value, (lambda scaled: math.floor(scaled + 1e-6)) if at_least else round)


def _ms(value: float, whole: Callable[[float], int]) -> str:
    if value >= 1000:
        return f"{whole(value / 10) / 100:,.2f} s"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{whole(value * 10**digits) / 10**digits:.{digits}f} ms"
