"""What a measured expectation is: the figure, and the edges it was taken from. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from failover.analysis.budget import Interval, of_statistic
from failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult
from scenarios.expect.asked import Asked, At


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value in the metric's unit; None when it could not be told, and ``evidence`` says why.

    ``low`` and ``high`` are the ends of its interval (``failover.analysis.budget``); None: ``value`` is exact.
    """

    value: float | None
    evidence: str
    low: float | None = None
    high: float | None = None
    open_ended: bool = False  # the true value is larger: something never came back
    never: bool = False  # what was expected did not happen at all: no limit is kept


def edges_of(expectation: Asked, metrics: DrillMetrics) -> list[EdgeResult]:
    """The edges an expectation is about."""
    kinds = {At.FAILURE: {EdgeKind.FAILURE}, At.REPAIR: {EdgeKind.REPAIR}, At.ANY: set(EdgeKind)}[expectation.edge]
    return [e for e in metrics.edges if e.edge.kind in kinds and expectation.fault in {None, *e.edge.faults}]


NO_EDGE = Figure(None, "the run has no such edge")


def longest_of(found: Sequence[Figure]) -> Figure:
    """The longest of several times, some of which may not be known; its interval is that of the longest of them."""
    known = [(figure.value, figure) for figure in found if figure.value is not None]
    if not known:
        return found[0]
    _, worst = max(known, key=lambda each: (each[1].open_ended, each[0]))
    if worst.open_ended:
        return worst
    ends = (Interval(*(ms if end is None else end for end in (each.low, each.high))) for ms, each in known)
    return replace(worst, **of_statistic(ends, max)._asdict())
