"""Figure of a measured expectation, and the edges that it covers. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.budget import Interval, of_statistic
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult
from hpn.scenarios.expect.selection import At, Selection


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value in the metric's unit; None when it could not be told, and ``evidence`` says why.

    ``low`` and ``high`` are the ends of its interval (``failover.analysis.budget``); None: ``value`` is exact. Of what
    had not ended ``lower_bound`` makes one.
    """

    value: float | None
    evidence: str
    low: float | None = None
    high: float | None = None
    open_ended: bool = False  # ``value`` is a lower bound, as the measured thing had not ended
    never: bool = False  # it never ends; without ``value`` the expected event did not happen and every limit fails

    @property
    def ends(self) -> Interval:
        """Interval of a known value; a lower bound has no upper end."""
        value = math.nan if self.value is None else self.value
        high = math.inf if self.open_ended else value if self.high is None else self.high
        return Interval(value if self.low is None else self.low, high)


def lower_bound(least: float, evidence: str, *, never: bool = False) -> Figure:
    """Return a lower bound for something that had not ended; ``never``: True if it will never end."""
    return Figure(least, evidence, least, None, open_ended=True, never=never)


def so_far(count: Figure) -> Figure:
    """Return a count that still grows after the record as a lower bound."""
    if count.value is None:
        return count
    return lower_bound(count.ends.low, f"{count.evidence}, and it was not over")


def of_figures(found: Sequence[Figure], statistic: Callable[[Sequence[float]], float], evidence: str) -> Figure:
    """Return a statistic that grows with each known figure; a lower bound if it depends on those without an end."""
    values = [math.nan if each.value is None else each.value for each in found]
    low, high = of_statistic((each.ends for each in found), statistic)
    if high < math.inf:
        return Figure(statistic(values), evidence, low, high)
    without_end = [math.inf if each.never else value for each, value in zip(found, values, strict=True)]
    return lower_bound(low, evidence, never=statistic(without_end) == math.inf)


def edges_of(expectation: Selection, metrics: DrillMetrics) -> list[EdgeResult]:
    """Return the edges that an expectation covers."""
    kinds = {At.FAILURE: {EdgeKind.FAILURE}, At.REPAIR: {EdgeKind.REPAIR}, At.ANY: set(EdgeKind)}[expectation.edge]
    return [e for e in metrics.edges if e.edge.kind in kinds and expectation.fault in {None, *e.edge.faults}]


NO_EDGE = Figure(None, "the run has no such edge")


def longest_of(found: Sequence[Figure]) -> Figure:
    """Return the longest of several times, some possibly unknown, with the interval of the longest."""
    known = [figure for figure in found if figure.value is not None]
    if not known:
        return found[0]
    return of_figures(known, max, max(known, key=rank).evidence)


def rank(figure: Figure) -> tuple[bool, bool, float]:
    """Return a sort key for times: without end sorts above ended, and without any future end above both."""
    return figure.never, figure.open_ended, figure.value or 0.0
