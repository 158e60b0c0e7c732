"""Spread of repeats of one drill: median, 95th percentile and maximum per figure, and their agreement. Pure.

Changes when the spread of repeats is shown in another way. A published figure needs at least ten repeats (FACTS section
6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median, pstdev

from rich.table import Table

from hpn.failover.analysis.budget import Interval
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.comparison.edge_figures import FIGURES, OUTAGES, figures_of
from hpn.results.text.bounds import at_least
from hpn.results.text.outages import outage_text
from hpn.results.text.tables import table
from hpn.results.text.values import milliseconds

PUBLISHABLE_REPEATS = 10


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure of one edge over all runs that have it.

    ``p95_ms`` is the nearest rank, so a value that occurred. ``low_ms`` and ``high_ms``: the median, widened on each
    side by the largest distance of any run's figure from the end of its interval. ``agree``: the intervals of all runs
    overlap. ``rsd_pct``: the relative standard deviation (RFC 8239 asks for less than 10 %). It is None if the mean is
    0 or a run has only a lower bound. Values from ``open_from_ms`` on are lower bounds; None: all runs recovered.
    ``bounds_ms``: the values of an outage, where one that was not seen counts as its upper bound; empty for others.
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
    open_from_ms: float | None = None
    bounds_ms: tuple[float, ...] = ()

    @property
    def interval_ms(self) -> Interval:
        """Interval of the median."""
        return Interval(self.low_ms, self.high_ms)


def compare(runs: Sequence[DrillMetrics]) -> tuple[Spread, ...]:
    """Return all figures of all edges, in the order of the first run; edges that only other runs have are left out."""
    if not runs:
        return ()
    found: dict[tuple[str, str], list[tuple[float, Interval]]] = {}
    for run in runs:
        for edge, figure, ms, interval, _ in figures_of(run):
            found.setdefault((edge, figure), []).append((ms, interval))
    order = [(result.edge.label, figure) for result in runs[0].edges for figure in FIGURES]
    return tuple(_spread(*key, found[key], len(runs) - len(found[key])) for key in order if key in found)


def _spread(edge: str, figure: str, found: Sequence[tuple[float, Interval]], missing: int) -> Spread:
    values, intervals = [ms for ms, _ in found], [interval for _, interval in found]
    bounds = [ms for ms, interval in found if math.isinf(interval.high)]
    middle, average = median(values), mean(values)
    return Spread(
        edge=edge,
        figure=figure,
        values_ms=tuple(values),
        missing=missing,
        median_ms=middle,
        p95_ms=_p95(values),
        max_ms=max(values),
        low_ms=max(middle - max(ms - interval.low for ms, interval in found), 0.0),
        high_ms=middle + max(interval.high - ms for ms, interval in found),
        rsd_pct=100 * pstdev(values) / average if average and not bounds else None,
        agree=max(one.low for one in intervals) <= min(one.high for one in intervals),
        open_from_ms=min(bounds, default=None),
        bounds_ms=tuple(interval.high if ms == 0 else ms for ms, interval in found) if figure in OUTAGES else (),
    )


def _p95(values: Sequence[float]) -> float:
    return nearest_rank(values, 95)


def nearest_rank(values: Sequence[float], percent: float) -> float:
    """Return the smallest value with at least ``percent`` of all values at or below it."""
    return sorted(values)[max(math.ceil(len(values) * percent / 100), 1) - 1]


def _shown(value_ms: float, of: Spread, over: Callable[[Sequence[float]], float]) -> str:
    """Return a statistic of the values as text; of an outage that was not seen its bound."""
    open_from_ms = math.inf if of.open_from_ms is None else of.open_from_ms
    open_ended = math.isinf(over([math.inf if each >= open_from_ms else each for each in of.values_ms]))
    if value_ms == 0 and of.bounds_ms and not open_ended:
        return outage_text(0.0, Interval(0.0, over(of.bounds_ms)))
    return at_least(milliseconds(value_ms), open_ended=open_ended)


def spread_table(spreads: Sequence[Spread]) -> Table:
    """Return the spreads as a table for the terminal."""
    columns = ("edge", "figure", ">runs", ">median", ">p95", ">max", ">measurement", ">rsd %", "agree")
    rows = [
        (
            spread.edge,
            spread.figure,
            str(len(spread.values_ms)) + (f" (-{spread.missing})" if spread.missing else ""),
            _shown(spread.median_ms, spread, median),
            _shown(spread.p95_ms, spread, _p95),
            _shown(spread.max_ms, spread, max),
            spread.interval_ms.text if spread.open_from_ms is None else at_least(f"{spread.low_ms:.2f}"),
            "-" if spread.rsd_pct is None else f"{spread.rsd_pct:.1f}",
            "yes" if spread.agree else "no: the runs differ by more than their intervals",
        )
        for spread in spreads
    ]
    return table("repeats, in ms; measurement: what the median may be by it", columns, rows, keys=2)
