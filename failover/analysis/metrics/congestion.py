"""Assignment of a flow's missing packets to congestion, and its outage without them.

Changes when congestion is separated from failover in another way. A flow whose path crosses an overloaded link loses
some packets; one whose path has failed loses all. A sender switches to its new path later than path control decides. So
for a moved flow congestion begins with the first packet that arrives after the move. Loss between the two may be
either: it counts as failover's, and the lower end of the interval excludes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hpn.failover.analysis.congestion import Congestion, EdgeCongestion
from hpn.failover.analysis.metrics.edge import Window
from hpn.failover.analysis.metrics.impairment import Judge
from hpn.failover.analysis.metrics.outage import find_outages
from hpn.failover.analysis.metrics.trace import Flags, FlowTrace
from hpn.failover.analysis.model import Edge, EdgeKind, FlowEdgeResult, Settings
from hpn.failover.analysis.offered import Crossing, Offered

_FOREVER_NS = np.iinfo(np.int64).max

Crossings = Mapping[int, Sequence[tuple[Crossing, int]]]
"""Crossings by flow: its path across an overloaded link, with the end of that time."""


def crossings_of(offered: Offered | None) -> Crossings:
    """Return the crossings of a run; none if its offered load is unknown."""
    found: dict[int, list[tuple[Crossing, int]]] = {}
    for span in () if offered is None else offered.spans:
        for each in span.crossing:
            found.setdefault(each.flow, []).append((each, span.end_ns))
    return found


def with_congestion(
    trace: FlowTrace,
    windows: Sequence[Window],
    results: Sequence[FlowEdgeResult],
    crossings: Crossings,
    settings: Settings,
    judge: Judge,
) -> tuple[FlowEdgeResult, ...]:
    """Return the ``results`` of a flow, one for each window, with their congestion loss; ``judge`` computed them."""
    times = crossings.get(trace.spec.id, ())
    if not times:
        return tuple(results)
    taken = [_taken(trace, window, times) for window in windows]
    every = np.logical_or.reduce([np.zeros(len(trace.sent_ns), np.bool_), *taken])
    if not every.any():
        return tuple(results)
    seen = _without(trace, every)
    table = find_outages(seen, settings.merge_packets)
    found = []
    for window, result, mine in zip(windows, results, taken, strict=True):
        if mine.any():
            other = judge(seen, table, window)
            at_ns = trace.sent_ns[mine]
            low_ms, high_ms = other.budget.interval
            either = _unsure(trace, window, times)
            if either.any():
                certain = _without(trace, every | either)
                low_ms = judge(certain, find_outages(certain, settings.merge_packets), window).budget.interval.low
            split = Congestion(
                lost=int(np.count_nonzero(mine)),
                first_at_ns=int(at_ns[0]),
                last_at_ns=int(at_ns[-1]),
                failover_ms=other.outage_plbm_ms,
                low_ms=low_ms,
                high_ms=high_ms,
                over=other.recovered,
            )
            found.append(replace(result, congestion=split))
        else:
            found.append(result)
    return tuple(found)


def of_edge(edge: Edge, flows: Sequence[FlowEdgeResult]) -> EdgeCongestion | None:
    """Return the congestion loss after one edge; None without any."""
    found = [flow.congestion for flow in flows if flow.congestion is not None]
    if not found:
        return None
    rest = [flow.lost + flow.corrupted - (flow.congestion.lost if flow.congestion else 0) for flow in flows]
    hit = [_alone(flow) for flow in flows if flow.relation.is_touched or flow.congestion is not None]
    return EdgeCongestion(
        packets=sum(each.lost for each in found),
        flows=len(found),
        first_ms=(min(each.first_at_ns for each in found) - edge.inject_before_ns) / 1e6,
        last_ms=(max(each.last_at_ns for each in found) - edge.inject_before_ns) / 1e6,
        failover_packets=sum(rest),
        failover_flows=sum(packets > 0 for packets in rest),
        failover_ms=max(each.failover_ms for each in hit),
        low_ms=max(each.low_ms for each in hit),
        high_ms=max(each.high_ms for each in hit),
        unrecovered=sum(not each.over for each in hit),
    )


def _alone(flow: FlowEdgeResult) -> Congestion:
    """Return a flow's result without congestion."""
    if flow.congestion is not None:
        return flow.congestion
    return Congestion(0, 0, 0, flow.outage_plbm_ms, *flow.budget.interval, over=flow.recovered)


def _without(trace: FlowTrace, flags: Flags) -> FlowTrace:
    """Return the trace as if these packets had arrived."""
    usual_ns = int(np.median(trace.delay_ns)) if len(trace.delay_ns) else 0
    return replace(trace, arrival_ns=np.where(flags, trace.sent_ns + usual_ns, trace.arrival_ns))


def _taken(trace: FlowTrace, window: Window, times: Sequence[tuple[Crossing, int]]) -> Flags:
    """Return flags of the packets lost to congestion."""
    taken = np.zeros(len(trace.sent_ns), np.bool_)
    for each, end_ns in times:
        arrived_ns = 0 if each.moved_ns is None else _first_arrival_ns(trace, each.moved_ns)
        _mark_lost(taken, trace, max(each.since_ns, _earliest_ns(window), arrived_ns), min(end_ns, window.end_ns))
    return taken


def _unsure(trace: FlowTrace, window: Window, times: Sequence[tuple[Crossing, int]]) -> Flags:
    """Return flags of the packets lost after a move and before the first arrival, by the old path or by congestion."""
    unsure = np.zeros(len(trace.sent_ns), np.bool_)
    for each, _ in times:
        if each.moved_ns is not None:
            end_ns = min(_first_arrival_ns(trace, each.moved_ns), window.end_ns)
            _mark_lost(unsure, trace, max(each.moved_ns, _earliest_ns(window)), end_ns)
    return unsure


def _earliest_ns(window: Window) -> int:
    """Return the earliest send time that counts as congestion: a failure drops packets in flight, a repair does not."""
    return window.start_ns if window.edge.kind is EdgeKind.REPAIR else window.edge.inject_before_ns


def _first_arrival_ns(trace: FlowTrace, since_ns: int) -> int:
    """Return the send time of the first packet from a moment on that arrives; the end of time if none does."""
    first = int(np.searchsorted(trace.received_sent_ns, since_ns, "left"))
    return int(trace.received_sent_ns[first]) if first < len(trace.received_sent_ns) else _FOREVER_NS


def _mark_lost(flags: Flags, trace: FlowTrace, begin_ns: int, end_ns: int) -> None:
    span = trace.span(begin_ns, max(begin_ns, end_ns))
    flags[span] |= ~trace.received[span] & ~trace.undecided[span] & ~trace.corrupted[span]
