"""What a run cost and why, in sentences: the first thing that anybody reads of it. Pure.

Changes when a run can cost something else. Figures are those of ``DrillMetrics``; a time is told by the upper end of
its interval, because "not more than" must hold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from failover.analysis.congestion import EdgeCongestion
from failover.analysis.job import JobMetrics
from failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult, Phases
from failover.analysis.offered import Offered, overloads

_MOST_SENTENCES = 3
_MOST_LINKS = 4
_MOST_EDGES = 12


def cost(metrics: DrillMetrics, faults: Mapping[str, str]) -> str:
    """What the faults cost, a sentence for each instant at which some broke; ``faults``: each in words, by its id."""
    if not metrics.edges:
        return _without_fault(metrics)
    groups: dict[tuple[str, ...], list[EdgeResult]] = {}
    for result in metrics.edges:
        groups.setdefault(_group(result, groups), []).append(result)
    found = [_sentence(metrics, ids, edges, faults) for ids, edges in groups.items()]
    more = len(found) - _MOST_SENTENCES
    return " ".join([*found[:_MOST_SENTENCES], *([f"And {more} more faults."] if more > 0 else [])])


def causes(metrics: DrillMetrics) -> tuple[str, ...]:
    """Why packets were lost and queue pairs died, edge by edge, congestion first; a line for each cause."""
    found: list[str] = []
    told: dict[str, str] = {}
    for result in metrics.edges:
        found += _causes(metrics, result, told)
    more = len(found) - _MOST_EDGES
    return (*found[:_MOST_EDGES], f"and {more} more causes") if more > 0 else tuple(found)


def _group(result: EdgeResult, groups: Mapping[tuple[str, ...], object]) -> tuple[str, ...]:
    """The faults that an edge is told with: a repair with its failure."""
    ids = result.edge.faults
    return next((known for known in groups if set(ids) <= set(known)), ids)


def _without_fault(metrics: DrillMetrics) -> str:
    lost = sum(flow.lost + flow.corrupted for flow in metrics.flows)
    if metrics.has_streams and metrics.flow_count:
        return f"No fault: {_queue_pairs(metrics.flow_count)}, {_packets(lost)} lost."
    job = metrics.job
    return "No fault." if job is None else f"No fault: an iteration took {_ms(job.mean_ms)} in the mean."


def _sentence(metrics: DrillMetrics, ids: Sequence[str], edges: Sequence[EdgeResult], faults: Mapping[str, str]) -> str:
    name = " and ".join(faults.get(each, each) for each in ids)
    parts: list[str] = []
    if metrics.has_streams:
        parts += _of_streams(metrics, edges)
    if metrics.job is not None:
        parts += _of_job(metrics, metrics.job, edges)
    return f"{name[:1].upper()}{name[1:]}: {', '.join(parts)}."


def _of_streams(metrics: DrillMetrics, edges: Sequence[EdgeResult]) -> Iterator[str]:
    failures = [edge for edge in edges if edge.edge.kind is EdgeKind.FAILURE] or list(edges)
    hit = max(edge.flows_hit for edge in failures)
    died = sum(edge.flows_died for edge in edges)
    lost = sum(edge.lost for edge in edges)
    yield f"{hit} of {_queue_pairs(metrics.flow_count)} hit"
    yield _stood_still(edges, died, lost)
    yield f"{died} died" if died else "none died"
    congested = [edge.congestion for edge in edges if edge.congestion is not None]
    if congested:
        packets, flows = sum(each.packets for each in congested), max(each.flows for each in congested)
        yield f"congestion took {_packets(packets)} of {flows} of them"
    before, during = edges[0].goodput.before_bps, edges[0].goodput.during_bps
    if before:
        yield f"goodput {100 * (during / before - 1):+.1f} %"


def _stood_still(edges: Sequence[EdgeResult], died: int, lost: int) -> str:
    """How long flows stood still, congestion apart; an outage that goes on at a repair began with its failure."""
    never = max(_unrecovered(edge) for edge in edges)
    if never > died:
        return f"{never - died} not back at the end of the run" if died else f"{never} not back before the next edge"
    high = max(_longest_ms(edge) for edge in edges)
    if not lost:
        return f"none stood still for more than {_ms(high)}" if high else "no packet lost"
    return f"{'no other ' if died else 'none '}stood still for more than {_ms(high)}"


def _unrecovered(edge: EdgeResult) -> int:
    return edge.flows_unrecovered if edge.congestion is None else edge.congestion.unrecovered


def _longest_ms(edge: EdgeResult) -> float:
    return edge.worst_outage_interval_ms.high if edge.congestion is None else edge.congestion.high_ms


def _of_job(metrics: DrillMetrics, job: JobMetrics, edges: Sequence[EdgeResult]) -> Iterator[str]:
    numbers = [metrics.edges.index(edge) for edge in edges]
    found = [job.edges[at] for at in numbers if at < len(job.edges)]
    who = "the client" if job.client is not None else "the job"
    if job.deaths:
        yield f"{who} died {len(job.deaths)} time{'s' * (len(job.deaths) != 1)}"
    if not found or not found[0].rate_before:
        yield f"{who} had ended no iteration before it"
        return
    worst = max(found, key=lambda each: each.longest_ms)
    least = "at least " if worst.unfinished else ""
    yield f"the longest iteration took {least}{_ms(worst.longest_ms)} (mean before: {_ms(job.mean_ms)})"
    lost = sum(max(each.lost, 0.0) for each in found)
    yield f"{who} lost the time of {lost:.1f} iterations"


def _causes(metrics: DrillMetrics, result: EdgeResult, told: dict[str, str]) -> Iterator[str]:
    """Of one edge; ``told``: the overloaded links that were told of, and at which edge."""
    label, words, congestion = result.edge.label, result.edge.words, result.congestion
    if congestion is not None:
        where = _overloaded(metrics.offered, label)
        before = told.setdefault(where, words) if where else next(reversed(told.values()), words)
        where = where if before == words else f"the same links as after the {before}"
        yield (
            f"{words}: {where}: loss {_from_to(congestion)} is congestion"
            f" ({_packets(congestion.packets)} of {_flows(congestion.flows)})"
        )
    flows = metrics.flows_at(result)
    rest = [flow for flow in flows if flow.lost + flow.corrupted > (flow.congestion.lost if flow.congestion else 0)]
    spans = () if metrics.offered is None else [span for span in metrics.offered.spans if span.after == label]
    marred = {flow for span in spans for flow in span.marred}
    pathless = {each.flow: each.why for each in (spans[-1].pathless if spans else ())}
    by_marred = [flow for flow in rest if flow.flow in marred]
    stranded = [flow for flow in rest if flow.flow in pathless and flow.flow not in marred]
    moved = [flow for flow in rest if flow.flow not in marred and flow.flow not in pathless]
    if by_marred:
        yield f"{words}: {_flows(len(by_marred))} lost packets on a link that the fault makes lose them"
    for why, count in Counter(pathless[flow.flow] for flow in stranded).most_common():
        yield f"{words}: {why or 'no path left'}: {_flows(count)} lost packets to the end"
    if moved:
        yield f"{words}: {_flows(len(moved))} lost packets until failover was over: {_last_step(result.phases)}"


def _from_to(congestion: EdgeCongestion) -> str:
    """'from 243 ms to 2.01 s after it'."""
    if congestion.last_ms <= 0:
        return "up to it"
    if congestion.first_ms <= 0:
        return f"until {_ms(congestion.last_ms)} after it"
    return f"from {_ms(congestion.first_ms)} to {_ms(congestion.last_ms)} after it"


def _overloaded(offered: Offered | None, label: str) -> str:
    """'uplinks of p0.s0.t0.1: 133 % of their rate', of all times after an edge."""
    spans = () if offered is None else offered.spans
    found = [
        text for at, span in enumerate(spans) if span.after == label and offered for text in overloads(offered, at)
    ]
    links = list(dict.fromkeys(found))
    more = [f"and {len(links) - _MOST_LINKS} more"] if len(links) > _MOST_LINKS else []
    return "; ".join([*links[:_MOST_LINKS], *more])


def _last_step(phases: Phases) -> str:
    """What ended it: the last thing that hosts and switches did."""
    steps = (
        (phases.path_last.ms, "path control moved the last queue pair"),
        (phases.converge.ms, "the last route changed (convergence)"),
        (_switched_ms(phases), "the last LAG changed its ports"),
        (phases.detect.ms, "an end of the link noticed (detection)"),
    )
    known = [(ms, what) for ms, what in steps if ms is not None]
    if not known:
        return "no LAG, route or path control reacted"
    ms, what = max(known)
    detect = phases.detect.ms
    late = f", of which {_ms(detect)} are detection time" if detect is not None and detect > ms / 2 else ""
    return f"{what} {_ms(ms)} after it{late}"


def _switched_ms(phases: Phases) -> float | None:
    """Since the injection."""
    detect, switch = phases.detect.ms, phases.switch.ms
    return None if detect is None or switch is None else detect + switch


def _queue_pairs(count: int) -> str:
    return f"{count:,} queue pair{'s' * (count != 1)}"


def _flows(count: int) -> str:
    return f"{count:,} flow{'s' * (count != 1)}"


def _packets(count: int) -> str:
    return f"{count:,} packet{'s' * (count != 1)}"


def _ms(value: float | None) -> str:
    """Rounded up to three digits: '0.65 ms', '4.46 s'."""
    if value is None:
        return "an unknown time"
    if value >= 1000:
        return f"{math.ceil(value / 10 - 1e-9) / 100:,.2f} s"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{math.ceil(value * 10**digits - 1e-6) / 10**digits:.{digits}f} ms"
