"""The figures in ms of every edge of a run, each with its interval. Pure.

Changes when another figure of an edge is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeGuard

from failover.analysis.budget import Interval
from failover.analysis.intervals import RECOVER, phase_interval
from failover.analysis.model import DrillMetrics, EdgeResult, Settings
from failover.analysis.phases import converged


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
