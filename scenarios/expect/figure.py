"""What a measured expectation is: the figure, and the edges it was taken from. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.budget import Interval, of_statistic
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult
from hpn.scenarios.expect.asked import Asked, At


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
    open_ended: bool = False  # ``value`` is a lower bound: what it is of had not ended
    never: bool = False  # and never will; without ``value``: what was expected did not happen, no limit is kept

    @property
    def ends(self) -> Interval:
        """The interval of a known value; a lower bound has no upper end."""
        value = math.nan if self.value is None else self.value
        high = math.inf if self.open_ended else value if self.high is None else self.high
        return Interval(value if self.low is None else self.low, high)


def lower_bound(least: float, evidence: str, *, never: bool = False) -> Figure:
    """The figure of what had not ended: at least that; ``never``: it will not end, however long one waits."""
    return Figure(least, evidence, least, None, open_ended=True, never=never)


def so_far(count: Figure) -> Figure:
    """A count that goes on growing after the record: a lower bound."""
    if count.value is None:
        return count
    return lower_bound(count.ends.low, f"{count.evidence}, and it was not over")


def of_figures(found: Sequence[Figure], statistic: Callable[[Sequence[float]], float], evidence: str) -> Figure:
    """A statistic that grows with each of its known figures; a lower bound where it cannot be told without those."""
    values = [math.nan if each.value is None else each.value for each in found]
    low, high = of_statistic((each.ends for each in found), statistic)
    if high < math.inf:
        return Figure(statistic(values), evidence, low, high)
    without_end = [math.inf if each.never else value for each, value in zip(found, values, strict=True)]
    return lower_bound(low, evidence, never=statistic(without_end) == math.inf)


def edges_of(expectation: Asked, metrics: DrillMetrics) -> list[EdgeResult]:
    """The edges an expectation is about."""
    kinds = {At.FAILURE: {EdgeKind.FAILURE}, At.REPAIR: {EdgeKind.REPAIR}, At.ANY: set(EdgeKind)}[expectation.edge]
    return [e for e in metrics.edges if e.edge.kind in kinds and expectation.fault in {None, *e.edge.faults}]


NO_EDGE = Figure(None, "the run has no such edge")


def longest_of(found: Sequence[Figure]) -> Figure:
    """The longest of several times, some of which may not be known; its interval is that of the longest of them."""
    known = [figure for figure in found if figure.value is not None]
    if not known:
        return found[0]
    return of_figures(known, max, max(known, key=rank).evidence)


def rank(figure: Figure) -> tuple[bool, bool, float]:
    """What orders times: one that had not ended is longer than all that had, and one that never will than that."""
    return figure.never, figure.open_ended, figure.value or 0.0
