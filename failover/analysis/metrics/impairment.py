"""Impairment of one flow: its outages with late packets counted as missing, and the gaps at its receiver.

Changes when the definition of an impaired packet or of a receive gap does. RFC 6412, 6414; figures in
``failover.analysis.impairment``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpn.failover.analysis.impairment import EdgeImpairment, Impairment
from hpn.failover.analysis.metrics.edge import NS_PER_MS, Window
from hpn.failover.analysis.metrics.outage import OutageTable, find_outages
from hpn.failover.analysis.metrics.trace import NEVER, Flags, FlowTrace, Ints
from hpn.failover.analysis.model import FlowEdgeResult, Relation, Settings

Judge = Callable[[FlowTrace, OutageTable, Window], FlowEdgeResult]
"""Function that returns all figures of a trace at one edge."""


def with_impairments(
    trace: FlowTrace, windows: Sequence[Window], results: Sequence[FlowEdgeResult], settings: Settings, judge: Judge
) -> tuple[FlowEdgeResult, ...]:
    """Return the ``results`` of a flow, one for each window, with their impairments; ``judge`` computed them."""
    late = _late(trace, settings)
    arrivals = _arrivals(trace)
    strict = _without(trace, late)
    table = find_outages(strict, settings.merge_packets) if late.any() else None
    doubtful = _held_back(trace, late, settings)
    found = []
    for window, result in zip(windows, results, strict=True):
        judged = result if table is None else judge(strict, table, window)
        absent = result.relation is Relation.ABSENT
        impairment = _impairment(trace, window, judged, doubtful)
        gap = (0.0, 0.0) if absent else _receive_gap(trace, arrivals, window, settings)
        impairment = replace(impairment, receive_gap_ms=gap[0] / NS_PER_MS, sender_pause_ms=gap[1] / NS_PER_MS)
        found.append(replace(result, impairment=impairment))
    return tuple(found)


def of_edge(flows: Sequence[FlowEdgeResult]) -> EdgeImpairment:
    """Return the effect of one edge on all flows."""
    hit = [flow.impairment for flow in flows if flow.relation.is_touched]
    return EdgeImpairment(
        packets=sum(flow.impairment.packets for flow in flows),
        late=sum(flow.late for flow in flows),
        worst_ms=max((each.plbm_ms for each in hit), default=0.0),
        worst_receive_gap_ms=max((each.receive_gap_ms for each in hit), default=0.0),
    )


def _late(trace: FlowTrace, settings: Settings) -> Flags:
    """Return flags of the packets that arrived later than the threshold."""
    delay = trace.arrival_ns - trace.sent_ns
    return np.asarray(trace.received & (delay > settings.forwarding_delay_threshold_ms * NS_PER_MS))


def _without(trace: FlowTrace, late: Flags) -> FlowTrace:
    """Return the flow with its late packets counted as lost."""
    return replace(trace, arrival_ns=np.where(late, NEVER, trace.arrival_ns)) if late.any() else trace


def _held_back(trace: FlowTrace, late: Flags, settings: Settings) -> Ints:
    """Return the late packets that would have been in time if the sender had stamped them at the end of its pause.

    A packet is stamped before its system call: a sender that is stopped between the two makes it late by itself.
    """
    pause = np.diff(trace.burst_clock, append=trace.burst_clock[-1:]) - _paced_ns(trace, settings)
    held = np.repeat(np.maximum(pause, 0), trace.burst_size)
    in_time = trace.arrival_ns - trace.sent_ns - held <= settings.forwarding_delay_threshold_ms * NS_PER_MS
    return np.flatnonzero(late & in_time)


def _paced_ns(trace: FlowTrace, settings: Settings) -> float:
    """Return the largest gap between two bursts that pacing makes by itself."""
    return trace.resolution_ns + settings.pacing_tick_ms * NS_PER_MS


def _impairment(trace: FlowTrace, window: Window, judged: FlowEdgeResult, doubtful: Ints) -> Impairment:
    """Return the impairment from the flow's figures with late packets missing."""
    span = trace.span(window.start_ns, window.end_ns)
    first, last = np.searchsorted(doubtful, (span.start, span.stop))
    held_ms = int(last - first) * trace.period_ns / NS_PER_MS
    return Impairment(
        packets=judged.lost + judged.corrupted,
        doubtful=int(last - first),
        plbm_ms=judged.outage_plbm_ms,
        tbm_ms=judged.outage_tbm_ms,
        low_ms=max(judged.budget.low_ms - held_ms, 0.0),
        high_ms=judged.budget.high_ms,
        first_at_ns=judged.first_loss_at_ns,
        over=judged.recovered,
    )


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """Packets in order of arrival; the first entry is the start of the flow.

    If a packet was missing to the end of the record, it is the last entry: nothing came until at least a period after
    it was sent.
    """

    at_ns: Ints
    sent_ns: Ints


def _arrivals(trace: FlowTrace) -> _Arrivals:
    if not len(trace.sent_ns):
        return _Arrivals(trace.sent_ns, trace.sent_ns)
    at, sent = trace.arrival_ns[trace.received], trace.received_sent_ns
    order = np.argsort(at, kind="stable")
    begun = trace.sent_ns[:1]
    last = int(np.flatnonzero(trace.received).max(initial=-1))
    lost = trace.missing[trace.missing > last][-1:]
    ended = trace.sent_ns[lost]
    return _Arrivals(
        np.concatenate([begun, at[order], ended + int(trace.period_ns)]), np.concatenate([begun, sent[order], ended])
    )


def _receive_gap(trace: FlowTrace, arrivals: _Arrivals, window: Window, settings: Settings) -> tuple[float, float]:
    """Return the longest silence of the window, and how long the sender itself paused within it, ns.

    A silence that begins within one period before the next edge belongs to that edge, which may have stopped the next
    packet.
    """
    inject_ns, period = window.edge.inject_before_ns, trace.period_ns
    low = int(np.searchsorted(arrivals.at_ns[1:], inject_ns, "right"))
    high = int(np.searchsorted(arrivals.at_ns[:-1], window.edge.window_end_ns - 2 * period, "left"))
    if low >= high:
        return 0.0, 0.0
    since = np.maximum(arrivals.at_ns[low:high] + period, inject_ns)
    silence = arrivals.at_ns[low + 1 : high + 1] - since
    if trace.spec.transfers is not None:  # a pause reaches the receiver with the packets' delay
        usual_ns = int(np.median(trace.delay_ns)) if len(trace.delay_ns) else 0
        ends_at, begins_at = arrivals.at_ns[low + 1 : high + 1] - usual_ns, since.astype(np.int64) - usual_ns
        silence = trace.clock(ends_at) - trace.clock(begins_at)
    longest = int(np.argmax(silence))
    if silence[longest] <= 0:
        return 0.0, 0.0
    ends = arrivals.sent_ns[low + longest : low + longest + 2]
    pause = trace.largest_gap_ns(int(ends.min()), int(ends.max())) - _paced_ns(trace, settings)
    return float(silence[longest]), max(pause, 0.0)
