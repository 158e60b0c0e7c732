"""Figures in ms of every edge of a run, each with its interval. Pure.

Changes when another figure of an edge is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeGuard

from hpn.failover.analysis.budget import Interval
from hpn.failover.analysis.intervals import RECOVER, phase_interval
from hpn.failover.analysis.model import DrillMetrics, EdgeResult, Settings
from hpn.failover.analysis.phases import converged
from hpn.failover.analysis.unended import median_ms, worst_ms


def _converged_ms(result: EdgeResult, settings: Settings) -> float | None:
    """Return the time to convergence in ms; None also if the next edge came first, since that is a lower bound."""
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
"""Name to figure in ms; None if a run has none."""
OUTAGES: Mapping[str, Callable[[DrillMetrics, EdgeResult], float]] = {_WORST: worst_ms, _MEDIAN: median_ms}
"""Lower bounds of the outages if they did not end for all flows."""
_ENDED = frozenset({_WORST, _MEDIAN, _FULL})
"""Figures that are then lower bounds."""


def figures_of(run: DrillMetrics) -> Iterator[tuple[str, str, float, Interval, bool]]:
    """Yield every figure of every edge of one run: edge, figure, ms, interval, and True if it is a lower bound.

    For a lower bound, ms and the low end are the largest certain value, and the interval has no upper end. Only streams
    have outages, so a run without streams has none, nor an edge all of whose flows had died before.
    """
    for result in run.edges:
        for figure, read in FIGURES.items():
            ms = read(result, run.settings)
            if not _told(ms) or (figure in OUTAGES and not _can_lose(run, result)):
                continue
            interval, never = _interval(figure, ms, run, result), figure in _ENDED and result.never_over
            if never:
                low_ms = max(interval.low, OUTAGES[figure](run, result) if figure in OUTAGES else 0.0)
                ms, interval = max(ms, low_ms), Interval(low_ms, math.inf)
            yield result.edge.label, figure, ms, interval, never


def _can_lose(run: DrillMetrics, result: EdgeResult) -> bool:
    """Return True if the edge has streams whose outage can be measured: any, and not all of them dead before."""
    return bool(run.flows) and not run.all_dead_before(result)


def _told(ms: float | None) -> TypeGuard[float]:
    return ms is not None and math.isfinite(ms)  # 1e999: a damaged file


def _interval(figure: str, ms: float, run: DrillMetrics, result: EdgeResult) -> Interval:
    """Return the interval by which a verdict judges the figure."""
    if figure == _WORST:
        return result.worst_outage_interval_ms
    if figure == _MEDIAN:
        return result.median_outage_interval_ms
    return phase_interval(RECOVER if figure == _FULL else figure, ms, result, run)
