"""Figures with units for people, and ranges of them: never an exponent, one unit for both ends. Pure.

Changes when a unit is shown in another way.
"""

from __future__ import annotations

import math

from hpn.failover.analysis.phrases import number, plain

NONE = "-"
_RATES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BITS = ("bps", "bit/s")
_DIGITS = 3  # significant digits of a range's larger end
_DECIMALS = {"ms": 2, "%": 2}
"""Maximum decimals of a range, by unit: no measurement is finer."""
_MOST_DECIMALS = 9


def rate(bps: float) -> str:
    """Return a rate in bits per second: '200G', '1.2T', '200M'."""
    for factor, letter in _RATES:
        if bps >= factor:
            return f"{plain(bps / factor, 4)}{letter}"
    return plain(bps, 4)


def milliseconds(value: float | None) -> str:
    """Return milliseconds with three significant digits, or whole milliseconds; '-' for None."""
    return NONE if value is None else f"{value:.{_digits(value)}f}"


def rounded_up(value: float) -> float:
    """Round up to the digits that are shown: rounding down would break an upper bound."""
    steps = 10.0 ** _digits(value)
    return float(math.ceil(value * steps - 1e-6) / steps)


def value_text(value: float, unit: str) -> str:
    """Return a figure with its unit: '20.0 ms', '96 %', '45', '11,740', '24.68 Mbit/s'."""
    if unit == "ms":
        return f"{milliseconds(value)} ms"
    if unit in _BITS:
        factor, shown = scale(value, unit)
        return f"{plain(value / factor, 4)} {shown}"
    if unit == "%" and abs(value) >= 1 and value % 1:
        return f"{value:,.{_DECIMALS[unit]}f} %"
    return f"{number(value)} {unit}".rstrip()


def span_text(low: float, high: float, unit: str, *, signed: bool = False) -> str:
    """Return both ends in one unit with equal decimals: '10.5 to 24.7 Mbit/s', '0.00 to 1.37 ms'.

    Ends that look the same appear once. ``signed`` shows '+' before values above zero. Both ends are finite.
    """
    factor, shown = scale(max(abs(low), abs(high)), unit)
    low, high = low / factor, high / factor
    decimals = _decimals(low, high, unit)
    first, last = (_fixed(each, decimals, unit, signed=signed) for each in (low, high))
    return f"{first if first == last else f'{first} to {last}'} {shown}".rstrip()


def scale(largest: float, unit: str) -> tuple[float, str]:
    """Return the divisor and the name of the resulting unit."""
    if unit not in _BITS:
        return 1.0, unit
    return next(((factor, f"{letter}bit/s") for factor, letter in _RATES if abs(largest) >= factor), (1.0, "bit/s"))


def _decimals(low: float, high: float, unit: str) -> int:
    """Return the decimals that show three digits of the larger end and the difference; 0 for whole numbers."""
    largest = max(abs(low), abs(high))
    if unit == "ms":
        wanted = _digits(largest)
    elif not largest or (low.is_integer() and high.is_integer()):
        return 0
    else:
        wanted = _DECIMALS.get(unit, _DIGITS - 1 - _magnitude(largest))
    apart = -_magnitude(high - low) if high > low else 0
    return min(max(wanted, apart, 0), _DECIMALS.get(unit, max(wanted, 2)), _MOST_DECIMALS)


def _magnitude(value: float) -> int:
    return math.floor(math.log10(value))


def _fixed(value: float, decimals: int, unit: str, *, signed: bool) -> str:
    text = f"{abs(value):.{decimals}f}" if unit == "ms" else f"{abs(value):,.{decimals}f}"
    if not text.strip("0."):
        return text  # zero has no sign
    return f"-{text}" if value < 0 else f"+{text}" if signed else text


def _digits(value: float) -> int:
    return 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
