"""Repeats of one drill put side by side: median, 95th percentile and maximum per figure, and whether they agree. Pure.

Changes when another figure is compared. A published figure needs at least ten repeats (FACTS section 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, pstdev

from rich.table import Table

from failover.model import DrillMetrics, EdgeKind, EdgeResult, Settings
from failover.phases import converged
from results.tables import table
from results.terminal import milliseconds

PUBLISHABLE_REPEATS = 10


def _converged_ms(result: EdgeResult, settings: Settings) -> float | None:
    """None too when the lab was not quiet before the next edge: what is known then is a lower bound."""
    found = converged(result, settings.validation_s)
    return None if found.reason else found.ms


FIGURES: Mapping[str, Callable[[EdgeResult, Settings], float | None]] = {
    "worst outage": lambda result, _: result.worst_outage_plbm_ms,
    "median outage": lambda result, _: result.median_outage_plbm_ms,
    "detect": lambda result, _: result.phases.detect.ms,
    "switch": lambda result, _: result.phases.switch.ms,
    "converge": lambda result, _: result.phases.converge.ms,
    "converged": _converged_ms,
    "full convergence": lambda result, _: result.full_convergence_ms,
}
"""Name to figure in ms; None where a run has none."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure of one edge over all runs that have it. ``p95_ms`` is the nearest rank, so a value that occurred.

    ``noise_ms`` is what one run can be off by: the largest of noise floor, resolution and injection skew over the runs.
    ``agree``: no run is farther from the median than that. ``rsd_pct`` is the relative standard deviation (RFC 8239
    asks for less than 10 %), None when the mean is 0.
    """

    edge: str
    figure: str
    values_ms: tuple[float, ...]
    missing: int
    median_ms: float
    p95_ms: float
    max_ms: float
    noise_ms: float
    rsd_pct: float | None
    agree: bool


def compare(runs: Sequence[DrillMetrics]) -> tuple[Spread, ...]:
    """All figures of all edges, in the order of the first run; edges that only other runs have are left out."""
    if not runs:
        return ()
    by_label = [{result.edge.label: result for result in run.edges} for run in runs]
    spreads = []
    for label in by_label[0]:
        made = [(run, found[label]) for run, found in zip(runs, by_label, strict=True) if label in found]
        noise_ms = max(_noise_ms(run, result) for run, result in made)
        for figure, read in FIGURES.items():
            figures = (read(result, run.settings) for run, result in made)
            values = [each for each in figures if each is not None and math.isfinite(each)]  # 1e999: a damaged file
            if values:
                spreads.append(_spread(label, figure, values, len(runs) - len(values), noise_ms))
    return tuple(spreads)


def _noise_ms(run: DrillMetrics, result: EdgeResult) -> float:
    skew_ms = result.edge.skew_ms if result.edge.kind is EdgeKind.FAILURE else 0.0  # a repair may take its time
    return max(run.noise.noise_floor_ms, result.resolution_ms, skew_ms)


def _spread(edge: str, figure: str, values: Sequence[float], missing: int, noise_ms: float) -> Spread:
    middle, average = median(values), mean(values)
    return Spread(
        edge=edge,
        figure=figure,
        values_ms=tuple(values),
        missing=missing,
        median_ms=middle,
        p95_ms=nearest_rank(values, 95),
        max_ms=max(values),
        noise_ms=noise_ms,
        rsd_pct=100 * pstdev(values) / average if average else None,
        agree=max(abs(value - middle) for value in values) <= noise_ms,
    )


def nearest_rank(values: Sequence[float], percent: float) -> float:
    """The smallest value with at least ``percent`` of all values at or below it."""
    return sorted(values)[max(math.ceil(len(values) * percent / 100), 1) - 1]


def spread_table(spreads: Sequence[Spread]) -> Table:
    """The comparison for the terminal."""
    columns = ("edge", "figure", ">runs", ">median", ">p95", ">max", ">noise", ">rsd %", "agree")
    rows = [
        (
            spread.edge,
            spread.figure,
            str(len(spread.values_ms)) + (f" (-{spread.missing})" if spread.missing else ""),
            milliseconds(spread.median_ms),
            milliseconds(spread.p95_ms),
            milliseconds(spread.max_ms),
            milliseconds(spread.noise_ms),
            "-" if spread.rsd_pct is None else f"{spread.rsd_pct:.1f}",
            "yes" if spread.agree else "no: spread exceeds the noise",
        )
        for spread in spreads
    ]
    return table("repeats, in ms", columns, rows)
