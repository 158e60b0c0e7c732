"""Figures of many runs on common axes with their limits: a dot per run, a bar for a bound. Pure.

Changes when a chart over many runs shows something else. A bound is a bar and never a dot, since its value is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hpn.results.judge.verdict import Check
from hpn.results.page.axis import Linear, Logarithmic, Tick, linear, logarithmic_ms
from hpn.results.text.checks import measured_text

MS, _PERCENT = "ms", "%"
_LANES, _TICKS = 12, 6
_MOST_MARKS = 400
_LANE_REM, _LEAST_REM = 0.5, 1.1


@dataclass(frozen=True, slots=True)
class Reading:
    """One run's figure. ``measured``: None for a bound; any value from ``low`` to ``high`` is possible.

    ``look``: a class of the style sheet: an outcome, or the side of a comparison.
    """

    run: str
    href: str
    look: str
    text: str
    measured: float | None
    low: float
    high: float

    @property
    def ends(self) -> Sequence[float]:
        """Values that an axis must contain."""
        return [end for end in (self.low, self.measured, self.high) if end is not None and math.isfinite(end)]


@dataclass(frozen=True, slots=True)
class Track:
    """Readings of one figure in a group of runs."""

    label: str
    text: str  # their summary
    readings: Sequence[Reading]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure over runs; ``limit``: None if it has none."""

    name: str
    unit: str
    tracks: Sequence[Track]
    limit: float | None = None
    is_upper: bool = True


@dataclass(frozen=True, slots=True)
class Placed:
    """A reading on the axis, in per cent.

    ``at_pct``: position of its dot, None for a bound; ``top_pct``: of its lane.
    """

    of: Reading
    at_pct: float | None
    low_pct: float
    width_pct: float
    top_pct: float

    @property
    def is_open(self) -> bool:
        """True if it has no upper end."""
        return math.isinf(self.of.high)


@dataclass(frozen=True, slots=True)
class PlacedTrack:
    """A track as drawn."""

    label: str
    text: str
    height_rem: float
    placed: Sequence[Placed]


@dataclass(frozen=True, slots=True)
class Strip:
    """A figure as drawn.

    ``limit_pct``: position of its limit; ``beyond``: start and width of the area that breaks it.
    """

    name: str
    tracks: Sequence[PlacedTrack]
    limit_pct: float | None
    beyond: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Strips:
    """Figures on one axis."""

    title: str
    strips: Sequence[Strip]
    ticks: Sequence[Tick]


def reading_of(check: Check, run: str, href: str, *, trusted: bool = True) -> Reading | None:
    """Return the figure of a run's check; None if the check has none."""
    if check.limit is None or (check.measured is None and not check.never):
        return None
    measured = check.measured
    low = measured if check.low is None else check.low
    high = measured if check.high is None else check.high
    if measured is None or check.never:
        low, high = low or 0.0, math.inf
    if check.open_ended:
        high = math.inf
    is_bound = measured is None or high == math.inf or (measured == 0 == low and bool(high))
    look = check.outcome.value if trusted else "inconclusive"
    return Reading(run, href, look, measured_text(check), None if is_bound else measured, low or 0.0, high or 0.0)


def charts(figures: Iterable[Figure]) -> tuple[Strips, ...]:
    """Return one chart for times, one for shares, and for other units one per order of magnitude."""
    found: dict[tuple[str, int], list[Figure]] = {}
    for figure in figures:
        if any(track.readings for track in figure.tracks):
            found.setdefault((figure.unit, 0 if figure.unit in {MS, _PERCENT} else _size(figure)), []).append(figure)
    return tuple(_chart(unit, of) for (unit, _), of in found.items())


def _size(figure: Figure) -> int:
    """Return the digits of the largest value: figures of different magnitude share no linear axis."""
    return math.ceil(math.log10(max(*map(abs, _ends([figure])), 10.0)))


def _ends(figures: Sequence[Figure]) -> list[float]:
    """Return the values that an axis must contain."""
    readings = (reading for figure in figures for track in figure.tracks for reading in track.readings)
    limits = [figure.limit for figure in figures if figure.limit is not None]
    return [*(end for reading in readings for end in reading.ends), *limits]


def _chart(unit: str, figures: Sequence[Figure]) -> Strips:
    axis = _axis(unit, _ends(figures) or [0.0])
    ticks = axis.ticks() if isinstance(axis, Logarithmic) else axis.ticks(_TICKS)
    return Strips(
        {MS: "Times", _PERCENT: "Shares, %", "": "Counts"}.get(unit, unit), [_strip(f, axis) for f in figures], ticks
    )


def _axis(unit: str, ends: Sequence[float]) -> Linear | Logarithmic:
    """Return the axis for a unit: logarithmic for times, otherwise linear; only shares need not include 0."""
    if unit == MS:
        return logarithmic_ms([*ends])
    return linear(min(ends), max(ends)) if unit == _PERCENT else linear(min(*ends, 0.0), max(*ends, 1.0))


def _strip(figure: Figure, axis: Linear | Logarithmic) -> Strip:
    tracks = [_track(each, axis) for each in figure.tracks]
    if figure.limit is None:
        return Strip(figure.name, tracks, None, (0.0, 0.0))
    at_pct = axis.at(figure.limit)
    return Strip(figure.name, tracks, at_pct, (at_pct, 100 - at_pct) if figure.is_upper else (0.0, at_pct))


def _track(track: Track, axis: Linear | Logarithmic) -> PlacedTrack:
    shown = track.readings[:_MOST_MARKS]
    lanes = max(1, min(len(shown), _LANES))
    placed = [_placed(each, axis, 100 * (at % lanes + 0.5) / lanes) for at, each in enumerate(shown)]
    return PlacedTrack(track.label, track.text, max(_LANE_REM * lanes, _LEAST_REM), placed)


def _placed(reading: Reading, axis: Linear | Logarithmic, top_pct: float) -> Placed:
    low = axis.at(reading.low)
    high = axis.at(reading.high) if math.isfinite(reading.high) else 100.0
    at = None if reading.measured is None else axis.at(reading.measured)
    return Placed(reading, at, low, max(high - low, 0.0), top_pct)
