"""The figures in ms of every edge of a run, each with its interval. Pure.

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
_OUTAGES: Mapping[str, Callable[[DrillMetrics, EdgeResult], float]] = {_WORST: worst_ms, _MEDIAN: median_ms}
"""What they certainly are where an edge did not end for all flows."""
_ENDED = frozenset({_WORST, _MEDIAN, _FULL})
"""Lower bounds where it did not."""


def figures_of(run: DrillMetrics) -> Iterator[tuple[str, str, float, Interval, bool]]:
    """Every figure of every edge of one run: edge, figure, ms, interval, and whether it is a lower bound.

    Of a lower bound ms and the low end are the largest that are certain, and the interval has no upper end. Streams
    alone tell outages: a run without any has none of these figures.
    """
    for result in run.edges:
        for figure, read in FIGURES.items():
            ms = read(result, run.settings)
            if not _told(ms) or (figure in _OUTAGES and not run.flows):
                continue
            interval, never = _interval(figure, ms, run, result), figure in _ENDED and result.never_over
            if never:
                low_ms = max(interval.low, _OUTAGES[figure](run, result) if figure in _OUTAGES else 0.0)
                ms, interval = max(ms, low_ms), Interval(low_ms, math.inf)
            yield result.edge.label, figure, ms, interval, never


def _told(ms: float | None) -> TypeGuard[float]:
    return ms is not None and math.isfinite(ms)  # 1e999: a damaged file


def _interval(figure: str, ms: float, run: DrillMetrics, result: EdgeResult) -> Interval:
    """The same interval that a verdict judges the figure by."""
    if figure == _WORST:
        return result.worst_outage_interval_ms
    if figure == _MEDIAN:
        return result.median_outage_interval_ms
    return phase_interval(RECOVER if figure == _FULL else figure, ms, result, run)
