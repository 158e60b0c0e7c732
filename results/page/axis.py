"""Axes of charts: positions of values, and tick labels. Pure.

Changes when charts get another kind of axis. Positions are percentages of the axis, 0 at its beginning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_LEAST_SPAN, _LEAST_SHARE = 1e-300, 1e-9  # smaller spans are below the precision of floats
_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled value on an axis."""

    at_pct: float
    text: str


@dataclass(frozen=True, slots=True)
class Linear:
    """Linear axis from ``low`` to ``high``, which are not equal."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return a value's position in per cent, clamped to the ends."""
        return min(max(100 * (value - self.low) / (self.high - self.low), 0.0), 100.0)

    def ticks(self, most: int) -> tuple[Tick, ...]:
        """Return round values between the ends, at least two and at most ``most``."""
        step = _round_step((self.high - self.low) / max(most - 1, 1))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return tuple(Tick(self.at(number * step), number_text(number * step)) for number in range(first, last + 1))


@dataclass(frozen=True, slots=True)
class Logarithmic:
    """Logarithmic axis in powers of ten, from ``low`` > 0 to ``high`` > ``low``."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return a value's position in per cent, clamped to the ends; 0 and negative values are at the lower end."""
        if value <= self.low:
            return 0.0
        return min(100 * math.log(value / self.low) / math.log(self.high / self.low), 100.0)

    def ticks(self) -> tuple[Tick, ...]:
        """Return every power of ten between the ends."""
        powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
        return tuple(Tick(self.at(10.0**power), milliseconds_text(10.0**power)) for power in powers)


def linear(low: float, high: float) -> Linear:
    """Return an axis that contains both values and ends at round ones."""
    reach = max(abs(low), abs(high))
    if not high - low > reach * _LEAST_SHARE + _LEAST_SPAN:
        half = reach / 2 if reach > _LEAST_SPAN else 0.5
        low, high = low - half, high + half
    step = _round_step((high - low) / 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Linear((first - (first * step > low)) * step, (last + (last * step < high)) * step)


def logarithmic_ms(values: list[float]) -> Logarithmic:
    """Return an axis of whole powers of ten around all values above 0: from 10 us or more, two powers or more."""
    there = [value for value in values if value > 0]
    low = 10.0 ** math.floor(math.log10(max(min(there, default=1.0), 0.01)) + 1e-9)
    high = 10.0 ** math.ceil(math.log10(max(max(there, default=1.0), low)) - 1e-9)
    return Logarithmic(low, max(high, low * 100))


def number_text(value: float) -> str:
    """Return a short number without an exponent, unlike '%g': '0', '0.25', '1200', '25M'."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            divisor = 1e3 if letter == "k" else limit
            return f"{value / divisor:.4g}{letter}"
    return f"{value:.4g}"


def milliseconds_text(value: float) -> str:
    """Return a time on an axis in its natural unit: '10 us', '1 ms', '10 s'."""
    if value < 1:
        return f"{value * 1e3:.4g} us"
    return f"{value:.4g} ms" if value < 1e3 else f"{value / 1e3:.4g} s"


def time_text(value_ms: float) -> str:
    """Return a measured time with three digits in its natural unit: '71 us', '18.5 ms', '2.46 s'."""
    return time_range(value_ms, value_ms)


def time_range(low_ms: float, high_ms: float) -> str:
    """Return two times, with one unit if they share it: '18 to 68 us', '18.5 ms to 2.46 s'.

    Times that look the same are shown once.
    """
    (low, unit), (high, other) = _three_digits(low_ms), _three_digits(high_ms)
    if unit != other:
        return f"{low} {unit} to {high} {other}"
    return f"{high} {other}" if low == high else f"{low} to {high} {other}"


def _three_digits(value_ms: float) -> tuple[str, str]:
    """Return the rounded value and its unit; no clock here has a resolution below 1 us."""
    if round(value_ms * 1e3) < 1e3:
        return f"{value_ms * 1e3:.0f}", "us"
    value, unit = (value_ms, "ms") if float(f"{value_ms:.3g}") < 1e3 else (value_ms / 1e3, "s")
    return f"{value:#.3g}".rstrip(".") if value < 1e3 else f"{value:,.0f}", unit


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))
