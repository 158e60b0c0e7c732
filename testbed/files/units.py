"""Durations, percentages and sizes in drill files: '50 ms', '45 %', '256 KiB'; parsed, bounded and printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field

from hpn.testbed.files.document import shorten

DURATION = r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*(ns|us|µs|ms|s|min)\s*"
PERCENT = r"\s*(\d{1,6}(?:\.\d{1,9})?)\s*%\s*"
SIZE = r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*([KMG]i?)?B\s*"
_DURATION, _PERCENT, _SIZE = re.compile(DURATION), re.compile(PERCENT), re.compile(SIZE)
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}


@dataclass(frozen=True, slots=True)
class Within(BeforeValidator):
    """Validator of a value with a unit; it accepts ``what`` from ``low`` to ``high``, both inclusive.

    ``written`` formats a parsed value as a file writes it; schemas and docs use all these fields.
    """

    what: str = ""
    low: str = ""
    high: str = ""
    written: Callable[..., str] = str

    @property
    def words(self) -> str:
        """Description such as 'a duration from 10 ms to 30 min'."""
        return f"{self.what} from {self.low} to {self.high}"


def parse_duration(value: object) -> int:
    """Parse a number with a unit (ns, us, ms, s, min) into nanoseconds. ValueError suggests what to write."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        hint = (
            f"write the unit: '{value} ms' or '{value} s'" if number else "write a number and a unit, such as '50 ms'"
        )
        raise ValueError(f"{shorten(value)} is not a duration; {hint}")
    whole, _, part = match[1].partition(".")
    factor = _NS[match[2]]
    return int(whole) * factor + (int(part) * factor // 10 ** len(part) if part else 0)


def format_duration(ns: int) -> str:
    """Format ``ns`` in the shortest exact way; ``parse_duration`` reads it back."""
    for unit in ("s", "ms", "us"):
        factor = _NS[unit]
        if ns >= factor or (ns == 0 and unit == "ms"):
            text = f"{ns // factor}.{ns % factor:0{len(str(factor)) - 1}d}".rstrip("0").rstrip(".")
            return f"{text} {unit}"
    return f"{ns} ns"


def parse_percent(value: object) -> float:
    """Parse '45 %' into a share (1.0 = 100 %). ValueError suggests what to write."""
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        hint = f"write '{_as_percent(value)} %'" if number else "write a number and '%', such as '45 %'"
        raise ValueError(f"{shorten(value)} is not a percentage; {hint}")
    return float(match[1]) / 100


def _as_percent(value: object) -> str:
    """Guess the intended percentage: 0.45 is a share, 45 is not."""
    share = isinstance(value, float) and 0 < value < 1
    return f"{value * 100:.6g}" if share and isinstance(value, float) else str(value)


def format_percent(share: float) -> str:
    """Format a share as '45 %'."""
    return f"{share * 100:.10g} %"


def parse_size(value: object) -> int:
    """Parse a number with a unit (B, KB, KiB, MB, MiB, GB, GiB) into bytes, rounded down. ValueError suggests a fix."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        hint = f"write the unit: '{value} B' or '{value} KB'" if number else "write a number and a unit, such as '1 MB'"
        raise ValueError(f"{shorten(value)} is not a size; {hint}")
    whole, _, part = match[1].partition(".")
    factor = _BYTES[match[2] or ""]
    return int(whole) * factor + (int(part) * factor // 10 ** len(part) if part else 0)


def format_size(size: int) -> str:
    """Format ``size`` in the shortest exact way; ``parse_size`` reads it back."""
    texts = [f"{size // factor} {unit}B" for unit, factor in _BYTES.items() if size % factor == 0 and size >= factor]
    return min(texts, key=len, default=f"{size} B")


def _text(pattern: str, low: str, high: str) -> object:
    """Return the type of the written value for JSON Schema, which can express its limits in words only."""
    return Annotated[str, Field(pattern=f"^{pattern}$", description=f"{low} to {high}")]


def size(low: str, high: str) -> Within:
    """Return the validator of a size between two others, both inclusive."""
    lowest, highest = parse_size(low), parse_size(high)

    def within(value: object) -> int:
        found = parse_size(value)
        if not lowest <= found <= highest:
            raise ValueError(f"{format_size(found)} is out of range; write {low} to {high}")
        return found

    return Within(within, _text(SIZE, low, high), what="a size", low=low, high=high, written=format_size)


def duration(low: str, high: str) -> Within:
    """Return the validator of a duration between two others, both inclusive."""
    low_ns, high_ns = parse_duration(low), parse_duration(high)

    def within(value: object) -> int:
        ns = parse_duration(value)
        if not low_ns <= ns <= high_ns:
            raise ValueError(f"{format_duration(ns)} is out of range; write {low} to {high}")
        return ns

    return Within(within, _text(DURATION, low, high), what="a duration", low=low, high=high, written=format_duration)


def percent(low: str, high: str) -> Within:
    """Return the validator of a percentage between two others, both inclusive."""
    lowest, highest = parse_percent(low), parse_percent(high)

    def within(value: object) -> float:
        share = parse_percent(value)
        if not lowest <= share <= highest:
            raise ValueError(f"{format_percent(share)} is out of range; write {low} to {high}")
        return share

    return Within(within, _text(PERCENT, low, high), what="a percentage", low=low, high=high, written=format_percent)


Duration = Annotated[int, duration("0 ms", "60 min")]
Percent = Annotated[float, percent("0 %", "1000 %")]
