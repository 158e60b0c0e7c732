"""Figures about the whole lab: unaffected parts, order of events, downtime of a job. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from hpn.failover.analysis.downtime import Downtime
from hpn.failover.analysis.intervals import between_events, downtime_interval
from hpn.failover.analysis.model import DrillMetrics, EdgeResult, FlowEdgeResult, Relation
from hpn.failover.analysis.phrases import packets, plain
from hpn.failover.analysis.protocol_events import EventSpan, ProtocolEvent
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import NO_EDGE, Figure, edges_of, longest_of, lower_bound
from hpn.scenarios.expect.job import job_stood_still
from hpn.scenarios.expect.metric import (
    NO_BEFORE,
    PROTOCOLS_ONLY,
    Larger,
    Metric,
    Needs,
    Pauses,
    Shape,
    Slowed,
    Takes,
    Traffic,
    Unit,
)
from hpn.scenarios.expect.scope import Scope
from hpn.scenarios.expect.selection import Selection


def _untouched(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the number of flows in the scope with lost or late packets or a failed queue pair.

    A sender's pause alone is inconclusive.
    """
    indexes = [metrics.edges.index(edge) for edge in edges_of(expectation, metrics)]
    if not indexes:
        return NO_EDGE
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
        return Figure(None, f"no flow that sends has to do with {', '.join(unseen)}")
    label, paused = max(watched, key=lambda item: item[1].send_gap_ms)
    if paused.send_gap_ms > claimed_ms:
        gap = f"{paused.name} at {label}: its sender paused {plain(paused.send_gap_ms)} ms"
        return Figure(None, f"{gap}, longer than {claimed_ms:g} ms: a stall of its own or the machine's")
    return Figure(0, f"none of {len({flow.name for _, flow in watched})} flows")


def _watched(scope: Scope, indexes: Sequence[int], metrics: DrillMetrics) -> list[tuple[str, FlowEdgeResult]]:
    """Return the sending flows that touch a part of the fabric, at each edge, with its label."""
    return [
        (metrics.edges[at].edge.label, flow.edges[at])
        for at in indexes
        for flow in metrics.flows
        if flow.edges[at].relation is not Relation.ABSENT
        and (flow.edges[at].sent or flow.edges[at].stopped_by_error)
        and scope.touches(flow.src_nic, flow.dst_nic, flow.edges[at].plane)
    ]


def _felt(flow: FlowEdgeResult, claimed_ms: float) -> str:
    """Return the effect on a flow that should be unaffected, or ''; late packets do not count if the sender paused."""
    if flow.lost + flow.corrupted:
        return f"{packets(flow.lost + flow.corrupted)} lost"
    if flow.stopped_by_error:
        return "its queue pair died"
    return f"{packets(flow.late)} late" if flow.late and flow.send_gap_ms <= claimed_ms else ""


def _job_downtime(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the time from a host's failure until all its replacement flows worked, in ms, for the longest takeover.

    If they never all worked, it is at least the time to the end of the window. A job of ranks reports its own downtime.
    """
    if metrics.job is not None:
        return job_stood_still(expectation, metrics, metrics.job)
    edges = edges_of(expectation, metrics)
    found = [_stood_still(edge, edge.downtime, metrics) for edge in edges if edge.downtime is not None]
    if not found:
        return Figure(None, "no spare took over in the run")
    return longest_of(found)


def _stood_still(edge: EdgeResult, downtime: Downtime, metrics: DrillMetrics) -> Figure:
    if downtime.ms is not None:
        evidence = f"{edge.edge.label}: {downtime.stand_ins} replacement flows, last {downtime.last_flow}"
        return Figure(downtime.ms, evidence, *downtime_interval(downtime.ms, downtime, metrics))
    least_ms = (edge.edge.window_end_ns - downtime.since_ns) / 1e6
    return lower_bound(least_ms, f"{edge.edge.label}: {downtime.reason}")


def _ordered(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the shortest time between the first events of two consecutive kinds, in ms; negative if inverted.

    One process hears all events, so a correct order is the order that it heard. An inversion shorter than a pause of
    that process (the event loop's lag) proves nothing.
    """
    found = [_order(expectation.events, edge) for edge in edges_of(expectation, metrics)]
    if not found:
        return NO_EDGE
    worst = min(found, key=lambda figure: (not figure.never, figure.value or 0.0))
    return worst if worst.value is None else replace(worst, **between_events(worst.value, metrics)._asdict())


def _order(events: Sequence[ProtocolEvent], edge: EdgeResult) -> Figure:
    label, start_ns = edge.edge.label, edge.edge.inject_before_ns
    marks: Mapping[ProtocolEvent, EventSpan] = {marked.mark: marked for marked in edge.marks}
    absent = [event for event in events if event not in marks]
    if absent:
        return Figure(None, f"no {absent[0]} event at {label}", never=True)
    gap_ns, before, after = min(
        (marks[later].first_ns - marks[earlier].first_ns, earlier, later) for earlier, later in pairwise(events)
    )
    times = [f"{mark} {(marks[mark].first_ns - start_ns) / 1e6:.2f} ms" for mark in (before, after)]
    return Figure(gap_ns / 1e6, f"{label}: {', '.join(times)}")


def _untouched_text(expectation: Selection) -> str:
    return " ".join([", ".join(expectation.scope.words), "untouched", *expectation.when])


def _order_text(expectation: Selection) -> str:
    return " ".join(["order", ", ".join(expectation.events), *expectation.when])


UNTOUCHED = Metric(
    "untouched",
    Unit.COUNT,
    Takes.EDGES,
    Slowed.NOT,
    Needs(fault=True, pauses=Pauses.SPANNED),
    "parts of the fabric that feel nothing",
    from_metrics(_untouched),
    Shape.PARTS,
    _untouched_text,
    larger=Larger.AS_LIMITED,
    tells=NO_BEFORE,
    unmodelled=PROTOCOLS_ONLY,
)
ORDER = Metric(
    "order",
    Unit.MS,
    Takes.EDGES,
    Slowed.STRETCHED,
    Needs(Traffic.EITHER, fault=True),
    "events that follow each other",
    from_metrics(_ordered),
    Shape.EVENTS,
    _order_text,
    larger=Larger.AS_LIMITED,
    unmodelled=PROTOCOLS_ONLY,
)
METRICS = (
    UNTOUCHED,
    ORDER,
    Metric(
        "job_downtime",
        Unit.MS,
        Takes.FAULT,
        Slowed.STRETCHED,
        Needs(Traffic.EITHER, fault=True, takeover=True, pauses=Pauses.BLIND),
        "from a host's death to the moment at which all queue pairs of the spare that replaces it are at work; of a"
        " `job`: from the end of its last iteration before its death to its new start",
        from_metrics(_job_downtime),
        larger=Larger.WORSE,
    ),
)
