"""Cost of a run, in a sentence for each fault: the summary at the top of its results. Pure.

Changes when a run can have another cost. Figures are those of ``DrillMetrics``. A time is given by the upper end of its
interval, because "not more than" must hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.job import LEAST_LOST, Death, JobEdge, JobMetrics
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult
from hpn.failover.analysis.phrases import about_ms, in_ms, packets, plain, queue_pairs
from hpn.failover.analysis.scattered import scattered

_MOST_SENTENCES = 3
_TIMER = "local_ack_timeout_err"
_SAME = 0.05
"""Per cent: a smaller change of goodput counts as none."""


def cost(metrics: DrillMetrics, faults: Mapping[str, str]) -> str:
    """Return the cost of the faults, a sentence for each instant of failure; ``faults``: each in words, by its id."""
    if not metrics.edges:
        return _without_fault(metrics)
    groups: dict[tuple[str, ...], list[EdgeResult]] = {}
    for result in metrics.edges:
        groups.setdefault(_group(result, groups), []).append(result)
    found = [_sentence(metrics, ids, edges, faults) for ids, edges in groups.items()]
    more = len(found) - _MOST_SENTENCES
    return " ".join([*found[:_MOST_SENTENCES], *([f"And {more} more faults."] if more > 0 else []), *_timers(metrics)])


def _timers(metrics: DrillMetrics) -> Iterator[str]:
    """Yield why a job stood still although its paths recovered soon; its NICs count over the whole run."""
    waits = 0 if metrics.job is None else metrics.job.summed_counters.get(_TIMER, 0)
    if waits:
        yield f"Queue pairs waited {waits:,} time{'s' * (waits != 1)} for a retry timer."


def _group(result: EdgeResult, groups: Mapping[tuple[str, ...], object]) -> tuple[str, ...]:
    """Return the faults that an edge is reported with: a repair with its failure."""
    ids = result.edge.faults
    return next((known for known in groups if set(ids) <= set(known)), ids)


def _without_fault(metrics: DrillMetrics) -> str:
    lost = sum(flow.lost + flow.corrupted for flow in metrics.flows)
    if metrics.has_streams and metrics.flow_count:
        return f"No fault: {queue_pairs(metrics.flow_count)}, {packets(lost)} lost."
    job = metrics.job
    if job is None or not job.iterations:
        return "No fault."
    ended = len(job.iterations)
    if not job.period_ms:
        return f"No fault: {ended} iteration{'s' * (ended != 1)}."
    return f"No fault: {ended} iterations, one every {plain(job.period_ms, 4)} ms."


def _sentence(metrics: DrillMetrics, ids: Sequence[str], edges: Sequence[EdgeResult], faults: Mapping[str, str]) -> str:
    name = " and ".join(faults.get(each, each) for each in ids)
    parts: list[str] = []
    if metrics.has_streams:
        parts += _of_streams(metrics, edges)
    if metrics.job is not None:
        parts += _of_job(metrics, metrics.job, edges)
    return f"{name[:1].upper()}{name[1:]}: {', '.join(parts)}."


@dataclass(frozen=True, slots=True)
class _Crossed:
    """Queue pairs whose data crossed the failed part, and those of which only acknowledgements did, by id."""

    data: tuple[int, ...]
    only_acks: tuple[int, ...]

    def words(self, of: int, *, acks: bool) -> str:
        """Return '4 of 48 queue pairs crossed it'; ``acks``: tell of acknowledgements too."""
        count, answers = len(self.data), len(self.only_acks)
        if not (acks and answers):
            return f"{count or 'none'} of {queue_pairs(of)} crossed it"
        others = f" other{'s' * (answers != 1)}" if count else ""
        return f"data of {count or 'none'} of {queue_pairs(of)} crossed it, acknowledgements of {answers}{others} did"


def _crossed(edges: Sequence[EdgeResult]) -> _Crossed | None:
    """Return the queue pairs that crossed the failed part, at the worst failure; None if unknown."""
    failures = [each.edge for each in edges if each.edge.kind is EdgeKind.FAILURE]
    found = [_Crossed(edge.crossed, edge.only_acks_crossed) for edge in failures if edge.crossed is not None]
    return max(found, key=lambda each: (len(each.data), len(each.only_acks)), default=None)


def _of_streams(metrics: DrillMetrics, edges: Sequence[EdgeResult]) -> Iterator[str]:
    failures = [edge for edge in edges if edge.edge.kind is EdgeKind.FAILURE] or list(edges)
    hit = max(edge.flows_hit for edge in failures)
    died = sum(edge.flows_died for edge in edges)
    lost = sum(edge.lost for edge in edges)
    gone = min(metrics.dead_before(edge) for edge in failures)
    crossed = _crossed(edges)
    if crossed is None:
        yield f"{hit} of {queue_pairs(metrics.flow_count)} hit"
    else:
        could = f" ({hit} could have)" if hit > len(crossed.data) else ""
        dead = {flow.flow for flow in metrics.flows if flow.stopped_at_ns is not None}
        yield f"{crossed.words(metrics.flow_count, acks=not dead.isdisjoint(crossed.only_acks))}{could}"
    if gone:
        yield f"{'all' if gone == hit else gone} of which had died before"
    if hit > gone and died >= hit - gone:
        yield f"{'all others' if gone else 'all of them'} died{_of_retries(metrics)}"
    elif hit > gone or not hit:
        yield _stood_still(metrics, edges, died, lost)
        yield f"{died} died{_of_retries(metrics)}" if died else "none died"
    congested = [edge.congestion for edge in edges if edge.congestion is not None]
    if congested:
        took, most = sum(each.packets for each in congested), max(each.flows for each in congested)
        yield f"congestion took {packets(took)} of {most} of them"
    before, during = edges[0].goodput.before_bps, min(edge.goodput.during_bps for edge in failures)
    if before:
        change = 100 * (during / before - 1)
        yield f"goodput {change:+.1f} %" if abs(change) >= _SAME else "goodput as before"


def _of_retries(metrics: DrillMetrics) -> str:
    """Return how long queue pairs that died had no acknowledgement: their retry timer decides; '' if not known."""
    most = max((flow.patience_ms or 0.0 for flow in metrics.flows if flow.stopped_at_ns is not None), default=0.0)
    return f" after {about_ms(most)} without an acknowledgement" if most else ""


def _stood_still(metrics: DrillMetrics, edges: Sequence[EdgeResult], died: int, lost: int) -> str:
    """Return how long flows stood still, without congestion, or the share of scattered packets lost.

    An outage that continues at a repair began with its failure.
    """
    never = max(_unrecovered(edge) for edge in edges)
    if never > died:
        return f"{never - died} not back at the end of the run" if died else f"{never} not back before the next edge"
    if (spread := scattered(metrics, edges)) is not None:
        return spread.words
    high = max(_longest_ms(metrics, edge) for edge in edges)
    if not lost and not high:
        return f"no packet lost{_stopped(metrics, edges)}"
    return f"{'no other outage' if died else 'no outage'} longer than {in_ms(high)}{_stopped(metrics, edges)}"


def _stopped(metrics: DrillMetrics, edges: Sequence[EdgeResult]) -> str:
    """Return how long flows that are hit received nothing, where lossless switches stop senders: no outage tells."""
    late = [edge.impairment for edge in edges if edge.impairment.late]
    if metrics.buffers is None or not late:
        return ""
    return f", but stopped for {about_ms(max(each.worst_receive_gap_ms for each in late))}"


def _unrecovered(edge: EdgeResult) -> int:
    return edge.flows_unrecovered if edge.congestion is None else edge.congestion.unrecovered


def _longest_ms(metrics: DrillMetrics, edge: EdgeResult) -> float:
    """Return the longest outage of the flows alive: a dead one stood still until the end, whatever its loss."""
    if edge.congestion is not None:
        return edge.congestion.high_ms
    living = {flow.flow for flow in metrics.flows if flow.stopped_at_ns is None}
    hit = [each for each in metrics.flows_at(edge) if each.relation.is_touched and each.flow in living]
    return max((each.budget.high_ms for each in hit), default=0.0)


def _of_job(metrics: DrillMetrics, job: JobMetrics, edges: Sequence[EdgeResult]) -> Iterator[str]:
    found = [(edge.edge.kind, cost) for edge in edges if (cost := _cost_at(job, metrics.edges.index(edge)))]
    who = "the client" if job.client is not None else "the job"
    crossed = _crossed(edges)
    if crossed is not None and job.queue_pairs and not metrics.has_streams:
        yield crossed.words(job.queue_pairs, acks=True)
    deaths = [death for death in job.deaths if any(death.is_in(edge.edge) for edge in edges)]
    if deaths and deaths[-1].restarted_at_ns is None:
        yield _end_of(deaths, edges, who)
        return
    if deaths:
        yield _stop_of(deaths, edges, who)
    if not found or not found[0][1].rate_before:
        yield f"{who} had ended no iteration before it"
        return
    failures = [cost for kind, cost in found if kind is EdgeKind.FAILURE]
    broken = failures or [cost for _, cost in found]
    mended = [cost for kind, cost in found if kind is EdgeKind.REPAIR] if failures else []
    if longest := _longest(broken):
        yield f"the longest iteration took {longest} (mean before: {about_ms(job.mean_ms)})"
    else:
        yield "no iteration ended before the repair" if mended else "no iteration ended"
    if mended and (longest := _begun_after(metrics, job, edges)):
        yield f"the longest that began after the repair {longest}"
    late = sum(max(each.lost, 0.0) for each in mended)
    lost = sum(max(each.lost, 0.0) for each in broken) + late
    if lost < LEAST_LOST:
        yield f"{who} lost less than {LEAST_LOST:g} iterations"
        return
    part = "all" if f"{late:.1f}" == f"{lost:.1f}" else f"{late:.1f}"
    of_these = f", {part} of them after the repair" if late >= LEAST_LOST else ""
    stands = found[-1][1].unfinished
    yield f"{who} lost the time of {'at least ' if stands else ''}{lost:.1f} iterations{of_these}"
    if stands:
        yield f"{who} stood still at the end of the run"


def _end_of(deaths: Sequence[Death], edges: Sequence[EdgeResult], who: str) -> str:
    """Return the text for a job that stays dead: its downtime grows with the run, so the time of death says more."""
    times = "" if len(deaths) == 1 else f"{len(deaths)} times, the last time "
    return f"{who} died {times}{in_ms((deaths[-1].at_ns - _begin_ns(edges)) / 1e6)} after it and was not started again"


def _stop_of(deaths: Sequence[Death], edges: Sequence[EdgeResult], who: str) -> str:
    """Return the text of its downtime, from the end of its last iteration before a death to its restart."""
    longest = in_ms(max(death.still_ns(edges[-1].edge.window_end_ns) for death in deaths) / 1e6)
    if len(deaths) == 1:
        return f"{who} died once and stood still for {longest}"
    return f"{who} died {len(deaths)} times and stood still for at most {longest}"


def _begin_ns(edges: Sequence[EdgeResult]) -> int:
    return min(edge.edge.inject_before_ns for edge in edges)


def _cost_at(job: JobMetrics, at: int) -> JobEdge | None:
    return job.edges[at] if at < len(job.edges) else None


def _longest(of: Sequence[JobEdge]) -> str:
    """Return the longest iteration as text: '248 ms'; '' if no iteration was under way."""
    worst = max(of, key=lambda each: each.longest_ms)
    least = "at least " if worst.unfinished else ""
    return f"{least}{about_ms(worst.longest_ms, at_least=worst.unfinished)}" if worst.longest_ms else ""


def _begun_after(metrics: DrillMetrics, job: JobMetrics, edges: Sequence[EdgeResult]) -> str:
    """Return the longest iteration that began after a repair; one under way then is reported with its failure."""
    repairs = [edge.edge for edge in edges if edge.edge.kind is EdgeKind.REPAIR]

    def is_after(begin_ns: float) -> bool:
        return any(repair.inject_before_ns <= begin_ns < repair.window_end_ns for repair in repairs)

    longest_ms = max((each.ms for each in job.iterations if is_after(each.begin_ns)), default=0.0)
    if is_after(metrics.edges[-1].edge.window_end_ns - job.open_ms * 1e6) and job.open_ms > longest_ms:
        return f"at least {about_ms(job.open_ms, at_least=True)}"
    return about_ms(longest_ms) if longest_ms else ""
