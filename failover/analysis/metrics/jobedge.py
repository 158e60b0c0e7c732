"""Cost of one edge for a job, by its iterations. Pure, no numpy.

Changes when iterations are counted in another way. A time is as stamped by the workers, late by up to a tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from hpn.failover.analysis.edge import Edge
from hpn.failover.analysis.job import Death, Done, Iteration, JobEdge
from hpn.failover.analysis.model import settled_window_ns
from hpn.failover.analysis.settings import Settings

_LAST = 5
"""Iterations that tell how long one takes at the end of the run."""


@dataclass(frozen=True, slots=True)
class Course:
    """The iterations of a run. ``counted``: each with the usual pause before it, and the one that the run cut off.

    ``overdue``: the one cut off, if it took longer than any that ended before the first edge.
    """

    start_ns: int
    first_ns: int  # first edge; without one the run's end
    open_ns: int  # begin of the iteration that the run cut off
    end_ns: int
    iterations: Sequence[Iteration]
    counted: Sequence[Iteration]
    deaths: Sequence[Death]
    overdue: Iteration | None


def course_of(
    counted: Sequence[Iteration],
    iterations: Sequence[Iteration],
    deaths: Sequence[Death],
    times_ns: tuple[int, int, int, int],
) -> Course:
    """Return the iterations of a run; times: its begin, first edge, begin of the iteration cut off, end."""
    start_ns, first_ns, open_ns, end_ns = times_ns
    cut = _unfinished(counted, deaths, end_ns)
    longest_ns = max((each.end_ns - each.begin_ns for each in counted if each.end_ns <= first_ns), default=0)
    overdue = cut if cut is not None and end_ns - cut.begin_ns > longest_ns else None
    whole = (*counted, cut) if cut is not None else tuple(counted)
    return Course(start_ns, first_ns, open_ns, end_ns, iterations, whole, deaths, overdue)


def job_edge(edge: Edge, course: Course, tick_ns: int, settings: Settings) -> JobEdge:
    """Return the cost of one edge, by the iterations of all ranks, and as they are counted in rates."""
    at_ns, until_ns = edge.inject_before_ns, edge.window_end_ns
    before_ns = _last_end(course.iterations, course.first_ns)
    rate = _rate(course.counted, course.start_ns, before_ns)
    off = min(tick_ns / max(before_ns - course.start_ns, 1), 1.0)
    since_ns = before_ns if at_ns <= course.first_ns else at_ns  # windows are consecutive: nothing counts twice
    settled_ns = until_ns - settled_window_ns(edge, settings)
    under_way = [each for each in course.iterations if each.begin_ns < until_ns and each.end_ns > at_ns]
    longest = max((each.ms for each in under_way), default=0.0)
    open_ms = (course.end_ns - course.open_ns) / 1e6
    unfinished = course.open_ns < until_ns and open_ms > longest
    during = _likely_rate(course, since_ns, until_ns)
    undone = sum(death.undone for death in course.deaths if at_ns <= death.at_ns < until_ns)
    return JobEdge(
        rate_before=rate,
        rate_during=during,
        rate_after=_likely_rate(course, settled_ns, until_ns),
        longest_ms=open_ms if unfinished else longest,
        unfinished=unfinished,
        lost=(rate - during) * (until_ns - since_ns) / 1e9 + undone,
        during=_done(course, rate, (since_ns, until_ns), tick_ns, off),
        after=_done(course, rate, (settled_ns, until_ns), tick_ns, off),
        undone=undone,
    )


def _last_end(iterations: Sequence[Iteration], at_ns: int) -> int:
    """Return the last iteration's end before ``at_ns``, else ``at_ns``: one under way belongs to a later time."""
    return max((each.end_ns for each in iterations if each.end_ns <= at_ns), default=at_ns)


def _unfinished(iterations: Sequence[Iteration], deaths: Sequence[Death], end_ns: int) -> Iteration | None:
    """Return the iteration that the run cut off, with the median time of the last ones, or as if it had just ended.

    The last ones, because a job may be slower after a failure. Their median, because an iteration that waited for an
    outage does not predict the current one. A dead job has none.
    """
    again_ns = 0 if not deaths else deaths[-1].restarted_at_ns
    if not iterations or again_ns is None:
        return None
    begin_ns = max(again_ns, *(each.end_ns for each in iterations))
    usual_ns = round(median(each.end_ns - each.begin_ns for each in iterations[-_LAST:]))
    return Iteration(len(iterations), begin_ns, max(begin_ns + usual_ns, end_ns), 0)


def _share(of: Iteration, from_ns: int, to_ns: int) -> float:
    """Return the share of an iteration that lies in a time."""
    return max(0, min(of.end_ns, to_ns) - max(of.begin_ns, from_ns)) / max(of.end_ns - of.begin_ns, 1)


def _rate(iterations: Sequence[Iteration], from_ns: int, to_ns: int) -> float:
    """Return iterations per second in a time: each counts with the share of it that lies in there."""
    if to_ns <= from_ns:
        return 0.0
    return sum(_share(each, from_ns, to_ns) for each in iterations) * 1e9 / (to_ns - from_ns)


def _likely_rate(course: Course, from_ns: int, to_ns: int) -> float:
    """Return iterations per second in a time; of one that is overdue and took longer than the last ones half counts."""
    rate, overdue = _rate(course.counted, from_ns, to_ns), course.overdue
    if overdue is None or overdue.end_ns > course.end_ns:
        return rate
    return rate - _rate([overdue], from_ns, to_ns) / 2


def _done(course: Course, rate: float, window_ns: tuple[int, int], tick_ns: int, off: float) -> Done:
    """Return the range of iterations that may have been done in a window."""
    from_ns, to_ns = window_ns
    shares = [_share(each, from_ns, to_ns) for each in course.counted]
    across = [
        min(tick_ns / max(each.end_ns - each.begin_ns, 1), 1.0)
        for each, share in zip(course.counted, shares, strict=True)
        if 0 < share < 1
    ]
    unsure = 0.0 if course.overdue is None else _share(course.overdue, from_ns, to_ns)
    low = max(sum(shares) - sum(across) - unsure, 0.0)
    return Done(rate * max(to_ns - from_ns, 0) / 1e9, low, sum(shares) + sum(across), off)
