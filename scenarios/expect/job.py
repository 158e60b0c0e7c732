"""Figures about a job: iterations, collectives, messages, and its survival. Pure."""

from __future__ import annotations

from hpn.failover.analysis.budget import around
from hpn.failover.analysis.job import Death, JobMetrics
from hpn.failover.analysis.model import DrillMetrics, EdgeResult
from hpn.failover.analysis.phrases import packets, plain
from hpn.failover.analysis.placement import Placement
from hpn.scenarios.expect.figure import Figure, edges_of, longest_of, lower_bound, so_far
from hpn.scenarios.expect.job_metric import edges_with_costs, job_metric, whole_run
from hpn.scenarios.expect.job_paths import ONE_PATH, takes_many
from hpn.scenarios.expect.metric import MODELLED, NO_BEFORE, WHOLE_RECORD, Lack, Larger, Slowed, Takes, Traffic, Unit
from hpn.scenarios.expect.selection import Selection

_IDLE = Figure(None, "no iteration ended, and no message was completed")


def _survives(_expectation: Selection, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    if job.deaths:
        return Figure(0.0, job.cause_of(job.deaths[0]))
    if not job.did_anything:
        return _IDLE
    if job.stands:
        return Figure(None, f"nothing was given up, and the last iteration has not ended in {plain(job.open_ms, 4)} ms")
    what = f"{job.queue_pairs} queue pairs" if job.client is None else f"{len(job.client.facts.ranks)} ranks"
    return Figure(1.0, f"{what}, {len(job.iterations)} iterations")


def _restarts(_expectation: Selection, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    count = sum(death.restarted_at_ns is not None for death in job.deaths)
    undone = sum(death.undone for death in job.deaths)
    return _counted(count, f"deaths: {len(job.deaths)}, iterations undone: {undone}", job)


def _hosts_replaced(_expectation: Selection, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    found = [each for death in job.deaths for each in death.replaced]
    said = ", ".join(f"{each.host} by {each.by}" for each in found)
    return _counted(len(found), said or f"{len(job.deaths)} deaths", job)


def _counted(count: int, said: str, job: JobMetrics) -> Figure:
    """Return a count of job events, or no figure for a job that neither did anything nor failed."""
    if not job.did_anything and not job.deaths:
        return _IDLE
    found = Figure(count, said)
    return so_far(found) if job.stands and not job.dead else found


def job_stood_still(expectation: Selection, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Return the longest time from the last iteration before a failure to the job's restart, in ms.

    Only failures in the windows of the selected edges count. Without a restart it is at least the time to the end of
    the run.
    """
    edges = [edge for edge, _ in edges_with_costs(expectation, metrics, job)]
    found = [_stood_still(edge, death, job) for edge in edges for death in job.deaths if death.is_in(edge.edge)]
    return longest_of(found) if found else Figure(None, "the job did not die")


def _stood_still(edge: EdgeResult, death: Death, job: JobMetrics) -> Figure:
    said = f"{edge.edge.label}: {job.cause_of(death)}; iterations undone: {death.undone}"
    figure_ms = death.still_ns(edge.edge.window_end_ns) / 1e6
    if death.restarted_at_ns is None:
        return lower_bound(figure_ms - job.tick_ms, said, never=death.final)
    return Figure(figure_ms, said, *around(figure_ms, job.tick_ms))


def _wrong(_expectation: Selection, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    if job.wrong or job.checked:
        checked = "" if job.checked is None else f", {job.checked} results checked"
        return Figure(job.wrong, f"{len(job.iterations)} iterations of {job.ranks} ranks{checked}")
    return Figure(None, "no result was checked" if job.checked == 0 else "nobody counted how many results were checked")


def _fct_p99(_expectation: Selection, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    if not job.messages.count:
        return Figure(None, "no message was completed")
    within = around(job.messages.p99_ms, job.tick_ms)
    if job.stands:
        return lower_bound(within.low, f"{job.messages.count:,} messages; the last iteration has not ended")
    return Figure(job.messages.p99_ms, f"{job.messages.count:,} messages", *within)


def _busbw(_expectation: Selection, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Return the lowest bus bandwidth of any collective from its mean time, accurate to a tick at each end."""
    counted = [span for span in job.spans if span.busbw_bps]
    if not counted:
        return Figure(None, "no collective ended at all of its ranks")
    worst = min(counted, key=lambda span: span.busbw_bps)
    bits = worst.busbw_bps * worst.mean_ms
    low, high = bits / (worst.mean_ms + job.tick_ms), bits / max(worst.mean_ms - job.tick_ms, 1e-6)
    said = f"{worst.label}: {plain(worst.mean_ms, 5)} ms, {worst.count} times"
    if job.stands:
        return Figure(worst.busbw_bps, f"{said}; the last iteration has not ended", 0.0, high)
    return Figure(worst.busbw_bps, said, low, high)


def _retransmitted(_expectation: Selection, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    return _counted(job.packets_again, f"of {packets(job.packets)}", job) if job.packets else _IDLE


def _paths_denied(_expectation: Selection, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Return how often a queue pair denied a path, over all queue pairs."""
    of = job.summed_counters
    if not takes_many(job):
        return ONE_PATH
    said = f"{of.get('path_answers', 0):,} of {of.get('path_probes', 0):,} probes answered"
    good = f"{of.get('paths_good', 0):,} paths good at the end"
    return _counted(of.get("path_denials", 0), f"{said}, {good}", job)


def _shares_apart(_expectation: Selection, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Return the largest deviation of a queue pair from the mean, in %, by completed messages."""
    if not job.messages.count:
        return Figure(None, "no message was completed")
    return Figure(100 * job.messages.apart, f"{job.messages.count:,} messages over {job.queue_pairs} queue pairs")


def _cnps_lost(_expectation: Selection, _metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Return the congestion notifications that were sent and not handled, in % of those sent."""
    sent = sum(of.get("np_cnp_sent", 0) for of in job.counters.values())
    handled = sum(of.get("rp_cnp_handled", 0) for of in job.counters.values())
    if not sent:
        return Figure(None, "no congestion notification was sent")
    return Figure(100 * (sent - handled) / sent, f"{sent:,} sent, {handled:,} handled")


def _placements(expectation: Selection, metrics: DrillMetrics, job: JobMetrics) -> list[Placement]:
    """Return the placements that settled after the selected edges, or else the last one before any edge."""
    if whole_run(expectation):
        return [each for each in job.placements if not each.edges][-1:]
    chosen = edges_of(expectation, metrics)
    numbers = {number for number, edge in enumerate(metrics.edges, 1) if edge in chosen}
    return [each for each in job.placements if each.edges in numbers]


def _link_imbalance(expectation: Selection, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Return the largest imbalance of any tier at any time."""
    found = _placements(expectation, metrics, job)
    if not found:
        return Figure(
            None,
            "nobody looked at paths then: edges are less than 100 ms apart, the run has no such edge, or switches"
            " balance packets",
        )
    tiers = [(tier, at) for at in found for tier in at.tiers]
    if not tiers:
        return Figure(None, "no queue pair crosses any link")
    tier, at = max(tiers, key=lambda each: each[0].imbalance)
    said = f"{at.when}, {tier.tier}: {tier.most} of {tier.crossings} queue pairs on {tier.busiest}, {tier.links} links"
    return Figure(tier.imbalance, said)


WRONG_RESULTS = job_metric(
    "wrong_results",
    Unit.COUNT,
    Takes.NOTHING,
    Slowed.NOT,
    "blocks of path MTU size that a collective left with a sum that is not the ranks'; of a client, steps whose sum"
    " differs between ranks, and what it says itself",
    _wrong,
    larger=Larger.WORSE,
    tells=WHOLE_RECORD,
)
METRICS = (
    job_metric(
        "fct_p99",
        Unit.MS,
        Takes.NOTHING,
        Slowed.STRETCHED,
        "99th percentile of the time from posting a message to the acknowledgement of its last byte, whole record",
        _fct_p99,
        larger=Larger.WORSE,
        tells=NO_BEFORE,
        of=Traffic.JOB,
    ),
    job_metric(
        "busbw",
        Unit.RATE,
        Takes.NOTHING,
        Slowed.NOT,
        "the least bus bandwidth of any collective, as nccl-tests counts it, by the mean time of its slowest ranks",
        _busbw,
        larger=Larger.BETTER,
        tells={**NO_BEFORE, **dict.fromkeys((Lack.CUT_OFF, Lack.AFTER), "it is an upper bound then")},
        unmodelled=MODELLED,
    ),
    job_metric(
        "packets_retransmitted",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.PER_PACKET,
        "packets sent again",
        _retransmitted,
        larger=Larger.WORSE,
        tells=NO_BEFORE,
        of=Traffic.JOB,
    ),
    job_metric(
        "paths_denied",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.PER_PACKET,
        "how often a queue pair of the multipath transport denied a path; a path denied again counts again",
        _paths_denied,
        larger=Larger.AS_LIMITED,
        tells=NO_BEFORE,
        of=Traffic.JOB,
    ),
    job_metric(
        "shares_apart",
        Unit.SHARE,
        Takes.NOTHING,
        Slowed.NOT,
        "how far the queue pair with the most or the fewest bytes of completed messages is from the mean of all that"
        " completed any",
        _shares_apart,
        larger=Larger.WORSE,
        tells=WHOLE_RECORD,
        of=Traffic.JOB,
    ),
    job_metric(
        "cnps_lost",
        Unit.SHARE,
        Takes.NOTHING,
        Slowed.NOT,
        "congestion notifications that were sent and not handled, of those sent",
        _cnps_lost,
        larger=Larger.WORSE,
        tells=WHOLE_RECORD,
        of=Traffic.JOB,
    ),
    job_metric(
        "link_imbalance",
        Unit.RATIO,
        Takes.EDGES,
        Slowed.NOT,
        "queue pairs on the link that most cross, over the mean of its tier's links; the tier where it is largest, as"
        " paths had settled after an edge, else before the first",
        _link_imbalance,
        larger=Larger.WORSE,
        tells=WHOLE_RECORD,
        of=Traffic.JOB,
    ),
    WRONG_RESULTS,
    job_metric(
        "job_restarts",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.NOT,
        "how often the job was started again after its death",
        _restarts,
        larger=Larger.AS_LIMITED,
        tells=NO_BEFORE,
        of=Traffic.JOB,
    ),
    job_metric(
        "hosts_replaced",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.NOT,
        "hosts whose ranks a spare has taken over, in all of the job's lives",
        _hosts_replaced,
        larger=Larger.AS_LIMITED,
        tells=NO_BEFORE,
        of=Traffic.JOB,
    ),
    job_metric(
        "job_survives",
        Unit.YES,
        Takes.NOTHING,
        Slowed.NOT,
        "no queue pair of the job used its retries up; no rank of a client gave up, or ended before the run did with"
        " another exit code than 0",
        _survives,
        larger=Larger.AS_LIMITED,
        tells=NO_BEFORE,
        sentence=lambda expectation: f"{expectation.whose or 'job'} {'survives' if expectation.limit else 'dies'}",
        unmodelled=MODELLED,
    ),
)
