"""Figures about a job: iterations, collectives, messages, and whether it lived. Pure."""

from __future__ import annotations

from collections.abc import Callable

from failover.analysis.budget import around
from failover.analysis.job import Death, JobEdge, JobMetrics
from failover.analysis.model import DrillMetrics, EdgeResult
from failover.analysis.placement import Placement
from scenarios.expect.asked import Asked, At, Whose
from scenarios.expect.evidence import from_metrics
from scenarios.expect.figure import NO_EDGE, Figure, edges_of, longest_of
from scenarios.expect.metric import Metric, Needs, Shape, Slowed, Takes, Traffic, Unit

_NO_JOB = Figure(None, "the run had no job")
_NO_CLIENT = Figure(None, "no client ran beside a job")
Measure = Callable[[Asked, DrillMetrics, JobMetrics], Figure]


def _of_job(measure: Measure) -> Callable[[Asked, DrillMetrics], Figure]:
    def measured(expectation: Asked, metrics: DrillMetrics) -> Figure:
        job = job_asked(expectation, metrics)
        if job is not None:
            return measure(expectation, metrics, job)
        return _NO_CLIENT if metrics.job is not None else _NO_JOB

    return measured


def job_asked(expectation: Asked, metrics: DrillMetrics) -> JobMetrics | None:
    """What an expectation is about: the job, or the client; None when it did not run."""
    ran = [job for job in (metrics.job, metrics.beside) if job is not None]
    if expectation.whose is None:
        return metrics.job
    of_client = expectation.whose is Whose.CLIENT
    return next((job for job in ran if (job.client is not None) == of_client), None)


def _edges(expectation: Asked, metrics: DrillMetrics, job: JobMetrics) -> list[tuple[EdgeResult, JobEdge]]:
    chosen = edges_of(expectation, metrics)
    return [(edge, cost) for edge, cost in zip(metrics.edges, job.edges, strict=True) if edge in chosen]


def _whole_run(expectation: Asked) -> bool:
    return expectation.edge is At.ANY and expectation.fault is None


def _iteration_time(expectation: Asked, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """The longest iteration: of the run, or of those under way after the edges chosen."""
    if _whole_run(expectation):
        if not job.iterations:
            return Figure(None, "no iteration ended")
        worst = max(job.iterations, key=lambda each: each.ms)
        open_ended = job.open_ms > worst.ms
        figure_ms = max(worst.ms, job.open_ms)
        said = f"iteration {worst.number} of {len(job.iterations)}"
        if open_ended:
            said = f"the last of {len(job.iterations) + 1} iterations has not ended"
        return Figure(figure_ms, said, *around(figure_ms, job.tick_ms), open_ended=open_ended)
    found = _edges(expectation, metrics, job)
    if not found:
        return NO_EDGE
    edge, cost = max(found, key=lambda each: each[1].longest_ms)
    said = f"{edge.edge.label}: {job.mean_ms:.4g} ms before" + (", and has not ended" if cost.unfinished else "")
    return Figure(cost.longest_ms, said, *around(cost.longest_ms, job.tick_ms), open_ended=cost.unfinished)


def _rate(part: Callable[[JobEdge], float], expectation: Asked, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """A rate of iterations as a share of that before the edge, %, at the edge where it is least."""
    found = [(edge, cost) for edge, cost in _edges(expectation, metrics, job) if cost.rate_before > 0]
    if not found:
        return Figure(None, "no iteration ended before the edge")
    edge, cost = min(found, key=lambda each: part(each[1]) / each[1].rate_before)
    said = f"{edge.edge.label}: {part(cost):.4g} iterations/s, {cost.rate_before:.4g} before"
    return Figure(part(cost) / cost.rate_before * 100, said)


def _rate_during(expectation: Asked, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    return _rate(lambda cost: cost.rate_during, expectation, metrics, job)


def _rate_after(expectation: Asked, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    return _rate(lambda cost: cost.rate_after, expectation, metrics, job)


def _lost_iterations(expectation: Asked, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Iterations that the rate before the edges promised and that were not done; those under way do not count."""
    found = _edges(expectation, metrics, job)
    if not found:
        return NO_EDGE
    lost = sum(max(0.0, cost.lost) for _, cost in found)
    return Figure(int(lost), f"{lost:.2f} of them, {found[0][1].rate_before:.4g} iterations/s before")


def _lost_samples(expectation: Asked, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """The same in samples."""
    found = _edges(expectation, metrics, job)
    if not job.samples:
        return Figure(None, "job.samples does not say how many an iteration trains on")
    if not found:
        return NO_EDGE
    lost = sum(max(0.0, cost.lost) for _, cost in found)
    return Figure(int(lost * job.samples), f"{lost:.2f} iterations of {job.samples}")


def _survives(_expectation: Asked, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    if not job.deaths:
        what = f"{job.queue_pairs} queue pairs" if job.client is None else f"{len(job.client.facts.ranks)} ranks"
        return Figure(1.0, f"{what}, {len(job.iterations)} iterations")
    first = job.deaths[0].queue_pair
    return Figure(0.0, f"queue pair {first} was given up, and the job with it" if job.client is None else first)


def _restarts(_expectation: Asked, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    count = sum(death.restarted_at_ns is not None for death in job.deaths)
    undone = sum(death.undone for death in job.deaths)
    return Figure(count, f"deaths: {len(job.deaths)}, iterations undone: {undone}")


def _hosts_replaced(_expectation: Asked, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    found = [each for death in job.deaths for each in death.replaced]
    said = ", ".join(f"{each.host} by {each.by}" for each in found)
    return Figure(len(found), said or f"{len(job.deaths)} deaths")


def job_stood_still(expectation: Asked, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """The longest time from the end of the last iteration before a death to the job's new start, ms.

    Of the deaths in the windows of the edges chosen. Without a new start the job stood still to the run's end at least.
    """
    edges = [edge for edge, _ in _edges(expectation, metrics, job)]
    found = [_stood_still(edge, death, job) for edge in edges for death in job.deaths if _within(death, edge)]
    return longest_of(found) if found else Figure(None, "the job did not die")


def _within(death: Death, edge: EdgeResult) -> bool:
    return edge.edge.inject_before_ns <= death.at_ns < edge.edge.window_end_ns


def _stood_still(edge: EdgeResult, death: Death, job: JobMetrics) -> Figure:
    said = f"{edge.edge.label}: {death.queue_pair} was given up; iterations undone: {death.undone}"
    if death.restarted_at_ns is None:
        return Figure((edge.edge.window_end_ns - death.since_ns) / 1e6, said, open_ended=True)
    figure_ms = (death.restarted_at_ns - death.since_ns) / 1e6
    return Figure(figure_ms, said, *around(figure_ms, job.tick_ms))


def _wrong(_expectation: Asked, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    return Figure(job.wrong, f"{len(job.iterations)} iterations of {job.ranks} ranks")


def _fct_p99(_expectation: Asked, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    if not job.messages.count:
        return Figure(None, "no message was completed")
    return Figure(job.messages.p99_ms, f"{job.messages.count} messages", *around(job.messages.p99_ms, job.tick_ms))


def _busbw(_expectation: Asked, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """The least bus bandwidth of any collective, by the mean of its times; each time is good to a tick at each end."""
    counted = [span for span in job.spans if span.busbw_bps]
    if not counted:
        return Figure(None, "no collective ended at all of its ranks")
    worst = min(counted, key=lambda span: span.busbw_bps)
    bits = worst.busbw_bps * worst.mean_ms
    low, high = bits / (worst.mean_ms + job.tick_ms), bits / max(worst.mean_ms - job.tick_ms, 1e-6)
    return Figure(worst.busbw_bps, f"{worst.label}: {worst.mean_ms:.5g} ms, {worst.count} times", low, high)


def _retransmitted(_expectation: Asked, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    return Figure(job.packets_again, f"of {job.packets} packets")


def _shares_apart(_expectation: Asked, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """How far the queue pair farthest from the mean is from it, % of it, by the messages that it completed."""
    if not job.messages.count:
        return Figure(None, "no message was completed")
    return Figure(100 * job.messages.apart, f"{job.messages.count} messages over {job.queue_pairs} queue pairs")


def _cnps_lost(_expectation: Asked, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Congestion notifications that were sent and not handled, % of those sent."""
    sent = sum(of.get("np_cnp_sent", 0) for of in job.counters.values())
    handled = sum(of.get("rp_cnp_handled", 0) for of in job.counters.values())
    if not sent:
        return Figure(None, "no congestion notification was sent")
    return Figure(100 * (sent - handled) / sent, f"{sent} sent, {handled} handled")


def _placements(expectation: Asked, metrics: DrillMetrics, job: JobMetrics) -> list[Placement]:
    """Those that settled after the edges chosen; without any, that of the healthy job: the last before an edge."""
    if _whole_run(expectation):
        return [each for each in job.placements if not each.edges][-1:]
    chosen = edges_of(expectation, metrics)
    numbers = {number for number, edge in enumerate(metrics.edges, 1) if edge in chosen}
    return [each for each in job.placements if each.edges in numbers]


def _link_imbalance(expectation: Asked, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """The largest imbalance of any tier and moment."""
    found = _placements(expectation, metrics, job)
    if not found:
        return Figure(
            None, "nobody looked at paths then: edges are less than 100 ms apart, or the run has no such edge"
        )
    tiers = [(tier, at) for at in found for tier in at.tiers]
    if not tiers:
        return Figure(None, "no queue pair crosses any link")
    tier, at = max(tiers, key=lambda each: each[0].imbalance)
    said = f"{at.when}, {tier.tier}: {tier.most} of {tier.crossings} queue pairs on {tier.busiest}, {tier.links} links"
    return Figure(tier.imbalance, said)


def _metric(
    key: str,
    unit: Unit,
    takes: Takes,
    slowed: Slowed,
    summary: str,
    measure: Measure,
    *,
    fault: bool = False,
    sentence: Callable[[Asked], str] | None = None,
    of: Traffic = Traffic.RANKS,
) -> Metric:
    shape = Shape.YES_NO if unit is Unit.YES else Shape.LIMITS
    needs = Needs(of, fault=fault)
    return Metric(key, unit, takes, slowed, needs, summary, from_metrics(_of_job(measure)), shape, sentence)


WRONG_RESULTS = _metric(
    "wrong_results",
    Unit.COUNT,
    Takes.NOTHING,
    Slowed.NOT,
    "blocks of path MTU size that a collective left with a sum that is not the ranks'; of a client, steps whose sum"
    " differs between ranks, and what it says itself",
    _wrong,
)
METRICS = (
    _metric(
        "iteration_time",
        Unit.MS,
        Takes.EDGES,
        Slowed.STRETCHED,
        "the longest iteration of all ranks that was under way after an edge, else of the run",
        _iteration_time,
    ),
    _metric(
        "iterations_during",
        Unit.SHARE,
        Takes.EDGES,
        Slowed.NOT,
        "iterations per second in the whole window of an edge, against before it",
        _rate_during,
        fault=True,
    ),
    _metric(
        "iterations_after",
        Unit.SHARE,
        Takes.EDGES,
        Slowed.NOT,
        "iterations per second in the last part of an edge's window, against before it",
        _rate_after,
        fault=True,
    ),
    _metric(
        "lost_iterations",
        Unit.COUNT,
        Takes.EDGES,
        Slowed.NOT,
        "iterations that the rate before an edge promised for its window and that did not end in it",
        _lost_iterations,
        fault=True,
    ),
    _metric(
        "lost_samples",
        Unit.COUNT,
        Takes.EDGES,
        Slowed.NOT,
        "lost_iterations times job.samples, fractions of an iteration included",
        _lost_samples,
        fault=True,
        of=Traffic.JOB,
    ),
    _metric(
        "fct_p99",
        Unit.MS,
        Takes.NOTHING,
        Slowed.STRETCHED,
        "99th percentile of the time from posting a message to the acknowledgement of its last byte, whole record",
        _fct_p99,
        of=Traffic.JOB,
    ),
    _metric(
        "busbw",
        Unit.RATE,
        Takes.NOTHING,
        Slowed.NOT,
        "the least bus bandwidth of any collective, as nccl-tests counts it, by the mean time of its slowest ranks",
        _busbw,
    ),
    _metric(
        "packets_retransmitted",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.PER_PACKET,
        "packets sent again",
        _retransmitted,
        of=Traffic.JOB,
    ),
    _metric(
        "shares_apart",
        Unit.SHARE,
        Takes.NOTHING,
        Slowed.NOT,
        "how far the queue pair with the most or the fewest bytes of completed messages is from the mean of all that"
        " completed any",
        _shares_apart,
        of=Traffic.JOB,
    ),
    _metric(
        "cnps_lost",
        Unit.SHARE,
        Takes.NOTHING,
        Slowed.NOT,
        "congestion notifications that were sent and not handled, of those sent",
        _cnps_lost,
        of=Traffic.JOB,
    ),
    _metric(
        "link_imbalance",
        Unit.RATIO,
        Takes.EDGES,
        Slowed.NOT,
        "queue pairs on the link that most cross, over the mean of its tier's links; the tier where it is largest, as"
        " paths had settled after an edge, else before the first",
        _link_imbalance,
        of=Traffic.JOB,
    ),
    WRONG_RESULTS,
    _metric(
        "job_restarts",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.NOT,
        "how often the job was started again after its death",
        _restarts,
        of=Traffic.JOB,
    ),
    _metric(
        "hosts_replaced",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.NOT,
        "hosts whose ranks a spare has taken over, in all of the job's lives",
        _hosts_replaced,
        of=Traffic.JOB,
    ),
    _metric(
        "job_survives",
        Unit.YES,
        Takes.NOTHING,
        Slowed.NOT,
        "no queue pair of the job used its retries up; no rank of a client gave up, or ended before the run did with"
        " another exit code than 0",
        _survives,
        sentence=lambda expectation: f"{expectation.whose or 'job'} {'survives' if expectation.limit else 'dies'}",
    ),
)
