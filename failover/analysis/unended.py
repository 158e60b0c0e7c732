"""Certain downtime of flows that never recovered, for figures that are lower bounds. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from hpn.failover.analysis.model import DrillMetrics, EdgeResult, FlowEdgeResult, FlowResult


def is_open(result: FlowEdgeResult) -> bool:
    """Return True if a flow lost packets at an edge and never recovered."""
    return result.stopped_by_error or not result.recovered


def open_ms(flow: FlowResult, result: FlowEdgeResult, edge: EdgeResult) -> float:
    """Return how long a flow that never recovered had certainly been down at the end of an edge's window.

    It counts from the first loss of the outage that did not end. All data may have arrived before the queue pair died.
    """
    started = [outage.first_loss_at_ns for outage in flow.longest_outages if outage.open]
    since_ns = min(started, default=flow.stopped_at_ns or result.first_loss_at_ns)
    if since_ns is None:
        return 0.0
    at = edge.edge
    return max(at.window_end_ns - max(since_ns, at.inject_before_ns), 0) / 1e6


def worst_ms(metrics: DrillMetrics, edge: EdgeResult) -> float:
    """Return the longest certain downtime of an affected flow at an edge that did not end for all; else 0."""
    found = (open_ms(flow, result, edge) for flow, result in _hit(metrics, edge) if is_open(result))
    return max(found, default=0.0)


def median_ms(metrics: DrillMetrics, edge: EdgeResult) -> float:
    """Return a lower bound of the median over the flows with an outage; 0 without one."""
    found = [_least_ms(flow, result, edge) for flow, result in _hit(metrics, edge) if result.outages]
    return median(found or [0.0])


def is_median_open(edge: EdgeResult) -> bool:
    """Return True if the median outage is a lower bound: half of the flows with loss or more never recovered.

    The median is over the flows with loss; for an even number it is the mean of the middle two.
    """
    return 0 < edge.flows_lossy <= 2 * edge.flows_unrecovered


def median_or_least_ms(metrics: DrillMetrics, edge: EdgeResult) -> float:
    """Return the median outage; if it is open, the largest known lower bound."""
    return max(edge.median_outage_plbm_ms, median_ms(metrics, edge) if is_median_open(edge) else 0.0)


def _hit(metrics: DrillMetrics, edge: EdgeResult) -> Iterator[tuple[FlowResult, FlowEdgeResult]]:
    at = metrics.edges.index(edge)
    return ((flow, flow.edges[at]) for flow in metrics.flows if flow.edges[at].relation.is_touched)


def _least_ms(flow: FlowResult, result: FlowEdgeResult, edge: EdgeResult) -> float:
    low_ms = result.budget.interval.low
    return max(low_ms, open_ms(flow, result, edge)) if is_open(result) else low_ms
