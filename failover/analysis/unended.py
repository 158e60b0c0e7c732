"""How long what never came back has certainly been down, for whoever tells a lower bound. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from hpn.failover.analysis.model import DrillMetrics, EdgeResult, FlowEdgeResult, FlowResult


def is_open(result: FlowEdgeResult) -> bool:
    """Whether a flow lost packets at an edge and never came back."""
    return result.stopped_by_error or not result.recovered


def open_ms(flow: FlowResult, result: FlowEdgeResult, edge: EdgeResult) -> float:
    """How long it had certainly been down at the end of an edge's window, where it never came back.

    From the first loss of the outage that nothing ended; its data may all have arrived before its queue pair died.
    """
    started = [outage.first_loss_at_ns for outage in flow.longest_outages if outage.open]
    since_ns = min(started, default=flow.stopped_at_ns or result.first_loss_at_ns)
    if since_ns is None:
        return 0.0
    at = edge.edge
    return max(at.window_end_ns - max(since_ns, at.inject_before_ns), 0) / 1e6


def worst_ms(metrics: DrillMetrics, edge: EdgeResult) -> float:
    """The longest time that a flow which is hit was certainly down at an edge that did not end for all; else 0."""
    found = (open_ms(flow, result, edge) for flow, result in _hit(metrics, edge) if is_open(result))
    return max(found, default=0.0)


def median_ms(metrics: DrillMetrics, edge: EdgeResult) -> float:
    """The least that the median over the flows with an outage may be; 0 without one."""
    found = [_least_ms(flow, result, edge) for flow, result in _hit(metrics, edge) if result.outages]
    return median(found or [0.0])


def _hit(metrics: DrillMetrics, edge: EdgeResult) -> Iterator[tuple[FlowResult, FlowEdgeResult]]:
    at = metrics.edges.index(edge)
    return ((flow, flow.edges[at]) for flow in metrics.flows if flow.edges[at].relation.is_touched)


def _least_ms(flow: FlowResult, result: FlowEdgeResult, edge: EdgeResult) -> float:
    low_ms = result.budget.interval.low
    return max(low_ms, open_ms(flow, result, edge)) if is_open(result) else low_ms
