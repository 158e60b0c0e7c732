"""Figures about a job's iterations: the longest, their rate relative to before, and lost ones. Pure."""

from __future__ import annotations

from collections.abc import Callable

from hpn.failover.analysis.budget import around
from hpn.failover.analysis.job import Done, JobEdge, JobMetrics
from hpn.failover.analysis.model import DrillMetrics, EdgeResult
from hpn.failover.analysis.phrases import number, plain
from hpn.scenarios.expect.figure import NO_EDGE, Figure, longest_of, lower_bound
from hpn.scenarios.expect.job_metric import edges_with_costs, job_metric, whole_run
from hpn.scenarios.expect.metric import MODELLED, NO_BEFORE, Lack, Larger, Slowed, Takes, Traffic, Unit
from hpn.scenarios.expect.selection import Selection


def _iteration_time(expectation: Selection, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Return the longest iteration: of the run, or of those in progress after the selected edges."""
    if whole_run(expectation):
        return _longest_iteration(job)
    found = edges_with_costs(expectation, metrics, job)
    if not found:
        return NO_EDGE
    under_way = [_longest_at(edge, cost, job) for edge, cost in found if cost.longest_ms]
    return longest_of(under_way) if under_way else Figure(None, "no iteration was under way")


def _longest_iteration(job: JobMetrics) -> Figure:
    """Return the longest iteration of the run.

    If the end of the run cut one off, the result is a lower bound.
    """
    if not job.iterations:
        return lower_bound(job.open_ms, "none ended", never=True) if job.dead else Figure(None, "no iteration ended")
    worst = max(job.iterations, key=lambda each: each.ms)
    within = around(worst.ms, job.tick_ms)
    if job.stands:
        said = f"the last of {len(job.iterations) + 1} iterations has not ended"
        return lower_bound(max(within.low, job.open_ms - job.tick_ms), said, never=job.dead)
    return Figure(worst.ms, f"iteration {worst.number} of {len(job.iterations)}", *within)


def _longest_at(edge: EdgeResult, cost: JobEdge, job: JobMetrics) -> Figure:
    before = f"{plain(job.mean_ms, 4)} ms before" if job.mean_ms else "none ended before"
    said = f"{edge.edge.label}: {before}"
    within = around(cost.longest_ms, job.tick_ms)
    if cost.unfinished:
        return lower_bound(within.low, f"{said}, and has not ended", never=job.dead)
    return Figure(cost.longest_ms, said, *within)


_NONE_BEFORE = Figure(None, "no iteration ended before the edge")


def _rate(
    part: Callable[[JobEdge], tuple[float, Done]], expectation: Selection, metrics: DrillMetrics, job: JobMetrics
) -> Figure:
    """Return a rate of iterations in % of that before the edge, at the edge where it is lowest."""
    found = [(edge, cost) for edge, cost in edges_with_costs(expectation, metrics, job) if cost.rate_before > 0]
    if not found or not job.mean_ms:
        return _NONE_BEFORE
    edge, cost = min(found, key=lambda each: part(each[1])[0] / each[1].rate_before)
    rate, done = part(cost)
    said = f"{edge.edge.label}: {number(rate)} iterations/s, {number(cost.rate_before)} before"
    share = rate / cost.rate_before * 100
    if not done.promised:
        return Figure(share, said)
    low, high = (100 * count / done.promised for count in (done.low / (1 + done.off), done.high * (1 + done.off)))
    return Figure(share, said, min(low, share), max(high, share))


def _rate_during(expectation: Selection, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    return _rate(lambda cost: (cost.rate_during, cost.during), expectation, metrics, job)


def _rate_after(expectation: Selection, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    return _rate(lambda cost: (cost.rate_after, cost.after), expectation, metrics, job)


def _lost_iterations(expectation: Selection, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Return the iterations missing from the rate before the edges; iterations that surely ended count as done."""
    return _lost(expectation, metrics, job, 1)


def _lost_samples(expectation: Selection, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Return the lost iterations in samples."""
    if not job.samples:
        return Figure(None, "job.samples does not say how many an iteration trains on")
    return _lost(expectation, metrics, job, job.samples)


def _lost(expectation: Selection, metrics: DrillMetrics, job: JobMetrics, each: int) -> Figure:
    """Return the lost iterations, each weighted with ``each``."""
    costs = [cost for _, cost in edges_with_costs(expectation, metrics, job)]
    if not costs:
        return NO_EDGE
    if not costs[0].rate_before or not job.mean_ms:
        return _NONE_BEFORE
    lost = sum(max(0.0, cost.lost) for cost in costs)
    least = sum(max(0.0, min(cost.lost, _least_lost(cost))) for cost in costs)
    most = sum(max(0.0, cost.lost, _most_lost(cost)) for cost in costs)
    said = f"{lost:,.2f} iterations, {number(costs[0].rate_before)} iterations/s before"
    return Figure(lost * each, said, least * each, most * each)


def _least_lost(cost: JobEdge) -> float:
    return cost.during.promised * (1 - cost.during.off) - cost.during.high + cost.undone


def _most_lost(cost: JobEdge) -> float:
    return cost.during.promised * (1 + cost.during.off) - cost.during.low + cost.undone


_CUT_OFF = dict.fromkeys((Lack.CUT_OFF, Lack.AFTER), "its interval takes in that what was cut off never ends")
METRICS = (
    job_metric(
        "iteration_time",
        Unit.MS,
        Takes.EDGES,
        Slowed.STRETCHED,
        "the longest iteration of all ranks that was under way after an edge, else of the run",
        _iteration_time,
        larger=Larger.WORSE,
        tells=NO_BEFORE,
        unmodelled=MODELLED,
    ),
    job_metric(
        "iterations_during",
        Unit.SHARE,
        Takes.EDGES,
        Slowed.NOT,
        "iterations per second in the whole window of an edge, against before it",
        _rate_during,
        larger=Larger.BETTER,
        tells=_CUT_OFF,
        fault=True,
        unmodelled=MODELLED,
    ),
    job_metric(
        "iterations_after",
        Unit.SHARE,
        Takes.EDGES,
        Slowed.NOT,
        "iterations per second in the last part of an edge's window, against before it",
        _rate_after,
        larger=Larger.BETTER,
        tells=_CUT_OFF,
        fault=True,
        unmodelled=MODELLED,
    ),
    job_metric(
        "lost_iterations",
        Unit.COUNT,
        Takes.EDGES,
        Slowed.NOT,
        "iterations that the rate before an edge promised for its window and that did not end in it",
        _lost_iterations,
        larger=Larger.WORSE,
        tells=_CUT_OFF,
        fault=True,
        unmodelled=MODELLED,
    ),
    job_metric(
        "lost_samples",
        Unit.COUNT,
        Takes.EDGES,
        Slowed.NOT,
        "lost_iterations times job.samples, fractions of an iteration included",
        _lost_samples,
        larger=Larger.WORSE,
        tells=_CUT_OFF,
        fault=True,
        of=Traffic.JOB,
        unmodelled=MODELLED,
    ),
)
