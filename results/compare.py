"""Repeats of one drill put side by side: median, 95th percentile and maximum per figure, and whether they agree. Pure.

Changes when another figure is compared. A published figure needs at least ten repeats (FACTS section 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, pstdev
from typing import TypeGuard

from rich.table import Table

from failover.analysis.budget import Interval
from failover.analysis.intervals import RECOVER, phase_interval
from failover.analysis.model import DrillMetrics, EdgeResult, Settings
from failover.analysis.phases import converged
from results.text.tables import table
from results.text.values import milliseconds

PUBLISHABLE_REPEATS = 10


def _converged_ms(result: EdgeResult, settings: Settings) -> float | None:
    """None too when the lab was not quiet before the next edge: what is known then is a lower bound."""
    found = converged(result, settings.validation_s)
    return None if found.reason else found.ms


_WORST, _MEDIAN, _FULL = "worst outage", "median outage", "full convergence"

FIGURES: Mapping[str, Callable[[EdgeResult, Settings], float | None]] = {
    _WORST: lambda result, _: result.worst_outage_plbm_ms,
    _MEDIAN: lambda result, _: result.median_outage_plbm_ms,
    "detect": lambda result, _: result.phases.detect.ms,
    "switch": lambda result, _: result.phases.switch.ms,
    "converge": lambda result, _: result.phases.converge.ms,
    "converged": _converged_ms,
    _FULL: lambda result, _: result.full_convergence_ms,
}
"""Name to figure in ms; None where a run has none."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure of one edge over all runs that have it. ``p95_ms`` is the nearest rank, so a value that occurred.

    ``low_ms`` and ``high_ms``: the median, and as far below and above it as the interval of any run reaches from its
    figure. ``agree``: the intervals of all runs have a value in common. ``rsd_pct`` is the relative standard deviation
    (RFC 8239 asks for less than 10 %), None when the mean is 0.
    """

    edge: str
    figure: str
    values_ms: tuple[float, ...]
    missing: int
    median_ms: float
    p95_ms: float
    max_ms: float
    low_ms: float
    high_ms: float
    rsd_pct: float | None
    agree: bool

    @property
    def interval_ms(self) -> Interval:
        """What the median may be."""
        return Interval(self.low_ms, self.high_ms)


def compare(runs: Sequence[DrillMetrics]) -> tuple[Spread, ...]:
    """All figures of all edges, in the order of the first run; edges that only other runs have are left out."""
    if not runs:
        return ()
    by_label = [{result.edge.label: result for result in run.edges} for run in runs]
    spreads = []
    for label in by_label[0]:
        made = [(run, found[label]) for run, found in zip(runs, by_label, strict=True) if label in found]
        for figure, read in FIGURES.items():
            found = [(ms, _interval(figure, ms, *at)) for at in made if _told(ms := read(at[1], at[0].settings))]
            if found:
                spreads.append(_spread(label, figure, found, len(runs) - len(found)))
    return tuple(spreads)


def figures_of(run: DrillMetrics) -> Iterator[tuple[str, str, float, Interval, bool]]:
    """Every figure of every edge of one run: edge, figure, ms, interval, and whether it is a lower bound."""
    for result in run.edges:
        for figure, read in FIGURES.items():
            ms = read(result, run.settings)
            if _told(ms):
                never = figure in {_WORST, _MEDIAN, _FULL} and result.never_over
                yield result.edge.label, figure, ms, _interval(figure, ms, run, result), never


def _told(ms: float | None) -> TypeGuard[float]:
    return ms is not None and math.isfinite(ms)  # 1e999: a damaged file


def _interval(figure: str, ms: float, run: DrillMetrics, result: EdgeResult) -> Interval:
    """The same interval that a verdict judges the figure by."""
    if figure == _WORST:
        return result.worst_outage_interval_ms
    if figure == _MEDIAN:
        return result.median_outage_interval_ms
    return phase_interval(RECOVER if figure == _FULL else figure, ms, result, run)


def _spread(edge: str, figure: str, found: Sequence[tuple[float, Interval]], missing: int) -> Spread:
    values, intervals = [ms for ms, _ in found], [interval for _, interval in found]
    middle, average = median(values), mean(values)
    return Spread(
        edge=edge,
        figure=figure,
        values_ms=tuple(values),
        missing=missing,
        median_ms=middle,
        p95_ms=nearest_rank(values, 95),
        max_ms=max(values),
        low_ms=max(middle - max(ms - interval.low for ms, interval in found), 0.0),
        high_ms=middle + max(interval.high - ms for ms, interval in found),
        rsd_pct=100 * pstdev(values) / average if average else None,
        agree=max(one.low for one in intervals) <= min(one.high for one in intervals),
    )


def nearest_rank(values: Sequence[float], percent: float) -> float:
    """The smallest value with at least ``percent`` of all values at or below it."""
    return sorted(values)[max(math.ceil(len(values) * percent / 100), 1) - 1]


def spread_table(spreads: Sequence[Spread]) -> Table:
    """The comparison for the terminal."""
    columns = ("edge", "figure", ">runs", ">median", ">p95", ">max", ">interval", ">rsd %", "agree")
    rows = [
        (
            spread.edge,
            spread.figure,
            str(len(spread.values_ms)) + (f" (-{spread.missing})" if spread.missing else ""),
            milliseconds(spread.median_ms),
            milliseconds(spread.p95_ms),
            milliseconds(spread.max_ms),
            spread.interval_ms.text,
            "-" if spread.rsd_pct is None else f"{spread.rsd_pct:.1f}",
            "yes" if spread.agree else "no: the runs differ by more than their intervals",
        )
        for spread in spreads
    ]
    return table("repeats, in ms", columns, rows, keys=2)
