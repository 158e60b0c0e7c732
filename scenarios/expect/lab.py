"""Figures about the lab, not chosen flows: phases, converged, untouched, order. One function per metric. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from failover.analysis import phases
from failover.analysis.budget import Interval, of_statistic
from failover.analysis.downtime import Downtime
from failover.analysis.intervals import between_events, downtime_interval, phase_interval
from failover.analysis.marks import Mark, Marked
from failover.analysis.model import DrillMetrics, EdgeResult, FlowEdgeResult, Phase, Relation
from scenarios.expect.expectation import Expectation, Metric
from scenarios.expect.figure import Figure, edges_of
from scenarios.expect.scope import Scope

_NO_EDGE = Figure(None, "the run has no such edge")


def phase(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    """A phase of the edge where it took longest, ms; a fault that nobody noticed took longer than any that was."""
    edges = edges_of(expectation, metrics)
    found: list[tuple[EdgeResult, Phase]] = [(e, getattr(e.phases, expectation.metric.value)) for e in edges]
    if expectation.metric is Metric.RECOVER:
        lost = [edge for edge in edges if edge.flows_unrecovered or edge.flows_died]
        if lost:
            n, label = max(lost[0].flows_unrecovered, lost[0].flows_died), lost[0].edge.label
            window_ms = (lost[0].edge.window_end_ns - lost[0].edge.inject_before_ns) / 1e6
            return Figure(window_ms, f"{n} flows did not recover after {label}", open_ended=True)
        if edges and not any(edge.flows_lossy for edge in edges):
            hidden_ms = max(edge.worst_outage_interval_ms.high for edge in edges)
            return Figure(0.0, "no flow lost anything", 0.0, hidden_ms)
    known = [(each.ms, edge, each) for edge, each in found if each.ms is not None]
    if not known:
        return Figure(None, found[0][1].reason if found else "the run has no such edge")
    worst_ms, edge, worst = max(known, key=lambda item: item[0])
    unseen = [(edge, each) for edge, each in found if _unseen(expectation.metric, edge, each)]
    broken = expectation.bound.is_upper and worst_ms > expectation.limit / 1e6
    if unseen and not broken:
        return Figure(None, f"{unseen[0][0].edge.label}: {unseen[0][1].reason}")
    evidence = f"{edge.edge.label}: {worst.by}" if worst.by else edge.edge.label
    within = of_statistic((phase_interval(expectation.metric.value, ms, edge, metrics) for ms, edge, _ in known), max)
    return Figure(worst_ms, evidence, *within)


def _unseen(metric: Metric, result: EdgeResult, phase: Phase) -> bool:
    """Whether the phase took longer than can be told: nobody noticed, or a LAG that is hit was not rewritten."""
    if phase.ms is not None:
        return bool(phase.reason)
    return metric is Metric.DETECT or (metric is Metric.SWITCH and any(link.lag for link in result.edge.links))


def converged(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    """Injection to the last change of a protocol's state anywhere in the lab, ms, at the edge where it took longest.

    Without the validation time of quiet after it the lab had not converged: it took longer than the window.
    """
    found = [_converged(edge, metrics) for edge in edges_of(expectation, metrics)]
    return _longest(found) if found else _NO_EDGE


def _longest(found: Sequence[Figure]) -> Figure:
    """The longest of several times, some of which may not be known; its interval is that of the longest of them."""
    known = [(figure.value, figure) for figure in found if figure.value is not None]
    if not known:
        return found[0]
    _, worst = max(known, key=lambda each: (each[1].open_ended, each[0]))
    if worst.open_ended:
        return worst
    ends = (Interval(*(ms if end is None else end for end in (each.low, each.high))) for ms, each in known)
    return replace(worst, **of_statistic(ends, max)._asdict())


def _converged(edge: EdgeResult, metrics: DrillMetrics) -> Figure:
    phase, label = phases.converged(edge, metrics.settings.validation_s), edge.edge.label
    if phase.ms is None:
        return Figure(None, f"{phase.reason} at {label}")
    said = f"{phase.by}, {phase.reason}" if phase.reason else phase.by
    within = phase_interval("converged", phase.ms, edge, metrics)
    return Figure(phase.ms, f"{label}: {said}", *within, open_ended=bool(phase.reason))


def untouched(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    """Flows with an end or plane in the scope that lost packets, got them late, or died; a pause alone is doubtful."""
    indexes = [metrics.edges.index(edge) for edge in edges_of(expectation, metrics)]
    if not indexes:
        return _NO_EDGE
    by_part = {part: _watched(part, indexes, metrics) for part in expectation.scope.parts}
    watched = list(dict.fromkeys(each for found in by_part.values() for each in found))
    claimed_ms = metrics.settings.claimed_resolution_ms
    felt = [(label, flow, said) for label, flow in watched if (said := _felt(flow, claimed_ms))]
    if felt:
        label, first, said = felt[0]
        hurt = len({flow.name for _, flow, _ in felt})
        return Figure(hurt, f"{first.name} at {label}: {said}" + (f"; {hurt - 1} more flows" if hurt > 1 else ""))
    unseen = [word for part, found in by_part.items() if not found for word in part.words]
    if unseen:
        return Figure(None, f"no flow has to do with {', '.join(unseen)}")
    label, paused = max(watched, key=lambda item: item[1].send_gap_ms)
    if paused.send_gap_ms > claimed_ms:
        gap = f"{paused.name} at {label}: its sender paused {paused.send_gap_ms:.3g} ms"
        return Figure(None, f"{gap}, longer than {claimed_ms:g} ms: a stall of its own or the machine's")
    return Figure(0, f"none of {len({flow.name for _, flow in watched})} flows")


def _watched(scope: Scope, indexes: Sequence[int], metrics: DrillMetrics) -> list[tuple[str, FlowEdgeResult]]:
    """The flows that have to do with a part of the fabric, at each edge, by its label."""
    return [
        (metrics.edges[at].edge.label, flow.edges[at])
        for at in indexes
        for flow in metrics.flows
        if flow.edges[at].relation is not Relation.ABSENT
        and scope.touches(flow.src_nic, flow.dst_nic, flow.edges[at].plane)
    ]


def _felt(flow: FlowEdgeResult, claimed_ms: float) -> str:
    """What a flow that should feel nothing felt; '' for nothing. A sender that pauses makes packets late by itself."""
    if flow.lost + flow.corrupted:
        return f"{flow.lost + flow.corrupted} packets lost"
    if flow.stopped_by_error:
        return "its queue pair died"
    return f"{flow.late} packets late" if flow.late and flow.send_gap_ms <= claimed_ms else ""


def job_downtime(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    """Death of a host to the moment at which all its stand-ins were at work, ms, at the takeover where it took longest.

    When that moment did not come, the job stood still to the end of the window at least.
    """
    edges = edges_of(expectation, metrics)
    found = [_stood_still(edge, edge.downtime, metrics) for edge in edges if edge.downtime is not None]
    if not found:
        return Figure(None, "no spare took over in the run")
    return _longest(found)


def _stood_still(edge: EdgeResult, downtime: Downtime, metrics: DrillMetrics) -> Figure:
    if downtime.ms is not None:
        evidence = f"{edge.edge.label}: {downtime.stand_ins} stand-ins, last {downtime.last_flow}"
        return Figure(downtime.ms, evidence, *downtime_interval(downtime.ms, downtime, metrics))
    least_ms = (edge.edge.window_end_ns - downtime.since_ns) / 1e6
    return Figure(least_ms, f"{edge.edge.label}: {downtime.reason}", open_ended=True)


def order(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    """The smallest time between the first events of two kinds that must follow each other, ms; negative when inverted.

    All events are heard by one process, so an order that is kept is the one it heard; an inversion shorter than that
    process once stood still (the event loop's lag) proves nothing.
    """
    found = [_order(expectation.events, edge) for edge in edges_of(expectation, metrics)]
    if not found:
        return _NO_EDGE
    worst = min(found, key=lambda figure: (not figure.never, figure.value or 0.0))
    return worst if worst.value is None else replace(worst, **between_events(worst.value, metrics)._asdict())


def _order(events: Sequence[Mark], edge: EdgeResult) -> Figure:
    label, start_ns = edge.edge.label, edge.edge.inject_before_ns
    marks: Mapping[Mark, Marked] = {marked.mark: marked for marked in edge.marks}
    absent = [event for event in events if event not in marks]
    if absent:
        return Figure(None, f"no {absent[0]} event at {label}", never=True)
    gap_ns, before, after = min(
        (marks[later].first_ns - marks[earlier].first_ns, earlier, later) for earlier, later in pairwise(events)
    )
    times = [f"{mark} {(marks[mark].first_ns - start_ns) / 1e6:.2f} ms" for mark in (before, after)]
    return Figure(gap_ns / 1e6, f"{label}: {', '.join(times)}")
