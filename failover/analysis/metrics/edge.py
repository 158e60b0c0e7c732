"""Effect of one edge on one flow: counts, outages, recovery, goodput.

Changes when a per-flow figure is added or its definition changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpn.failover.analysis.edges import relation_of
from hpn.failover.analysis.metrics.budget import lossless, lossy
from hpn.failover.analysis.metrics.goodput import flow_goodput
from hpn.failover.analysis.metrics.outage import OutageTable, bounds_since, pattern_of, recovery_index
from hpn.failover.analysis.metrics.trace import FlowTrace, Ints
from hpn.failover.analysis.model import Edge, EdgeKind, FlowEdgeResult, Relation, Settings

NS_PER_MS = 1e6
NS_PER_S = 10**9


@dataclass(frozen=True, slots=True)
class Window:
    """The packets of one flow that count for an edge, by send time.

    It starts before the injection, to include packets that were in flight: those in the queues of a link die with it.
    """

    edge: Edge
    start_ns: int
    end_ns: int
    goodput_start_ns: int  # not before the previous edge
    control: bool  # the flow is untouched by this edge and every edge before


@dataclass(frozen=True, slots=True)
class _Share:
    """The outages of one edge: rows [low, high) of the table, of which ``low`` may have been open at injection."""

    low: int
    high: int
    carried: bool
    plbm_ns: float
    tbm_ns: float
    worst_ns: float
    certain_ns: float
    possible_ns: float
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class _Recovery:
    recovered: bool
    at_ns: int | None
    validated: bool
    in_window: bool


def windows_of(trace: FlowTrace, edges: tuple[Edge, ...], settings: Settings) -> tuple[Window, ...]:
    """Return the window of each edge for this flow; consecutive windows meet without overlap."""
    starts = _starts_ns(trace, edges, settings)
    found, control = [], True
    for at, edge in enumerate(edges):
        control = control and relation_of(trace.spec, edge) is Relation.NONE
        end_ns = starts[at + 1] if at + 1 < len(edges) else max(starts[at], edge.window_end_ns)
        previous = edges[at - 1].inject_before_ns if at else 0
        found.append(Window(edge, starts[at], end_ns, previous, control))
    return tuple(found)


def _starts_ns(trace: FlowTrace, edges: tuple[Edge, ...], settings: Settings) -> list[int]:
    """Return the time of each injection less the packets that may have been in flight.

    The immediate effect of an edge on the flow shows within one packet period, and belongs to that edge. Neither its
    repair nor an edge elsewhere, which drops no packet in flight either, reaches back into that time.
    """
    starts: list[int] = []
    touched, shown_ns = EdgeKind.REPAIR, 0  # kind of the last edge that touched it, and the end of its immediate effect
    for edge in edges:
        if not relation_of(trace.spec, edge).is_touched:
            starts.append(max(edge.inject_before_ns, shown_ns))
            continue
        recent = _recent(trace, edge.inject_before_ns)
        in_flight_ns = _in_flight_ns(trace, recent, edge.inject_before_ns, settings)
        start_ns = max(edge.inject_before_ns - in_flight_ns, _arrived_ns(trace, recent, edge.inject_before_ns))
        if (touched, edge.kind) == (EdgeKind.FAILURE, EdgeKind.REPAIR):
            start_ns = max(start_ns, min(edge.inject_before_ns, shown_ns))
        starts.append(start_ns)
        touched, shown_ns = edge.kind, edge.inject_after_ns + in_flight_ns
    for at in range(len(starts) - 1, 0, -1):
        starts[at - 1] = min(starts[at - 1], starts[at])
    return starts


def _in_flight_ns(trace: FlowTrace, recent: slice, inject_ns: int, settings: Settings) -> int:
    """Return the largest delay of the ``recent`` packets plus one period, limited to the longest delay of the method.

    It is 0 for a flow that is in outage at the injection, as none of its packets is in flight. A flow whose sender
    paused until just before is not in outage: a late sender catches up with several packets at once.
    """
    if recent.start == recent.stop:
        return 0
    margin_ns = float(trace.delay_ns[recent].max()) + trace.resolution_ns
    if _missing_since(trace, int(trace.received_sent_ns[recent.stop - 1]), inject_ns - margin_ns):
        return 0
    return int(min(margin_ns, settings.longest_delay_ms * NS_PER_MS))


def _arrived_ns(trace: FlowTrace, recent: slice, inject_ns: int) -> int:
    """Return the send time of the last packet that had arrived by the injection: the rest of its burst may be in
    flight."""
    sent_ns = trace.received_sent_ns[recent]
    arrived = sent_ns[sent_ns + trace.delay_ns[recent] < inject_ns]
    return int(arrived.max(initial=0))


def _recent(trace: FlowTrace, inject_ns: int) -> slice:
    """Return the received packets sent in the 100 ms before the injection, or 20, but none a second old."""
    times = inject_ns - NS_PER_S, inject_ns - NS_PER_S // 10, inject_ns
    oldest, recent, last = (int(at) for at in np.searchsorted(trace.received_sent_ns, times))
    return slice(max(oldest, min(recent, last - 20)), last)


def _missing_since(trace: FlowTrace, after_ns: int, until_ns: float) -> bool:
    """Return True if a packet sent in (after, until) is missing."""
    first = int(np.searchsorted(trace.sent_ns, after_ns, "right"))
    row = int(np.searchsorted(trace.missing, first))
    return row < len(trace.missing) and int(trace.sent_ns[trace.missing[row]]) < until_ns


def judge_edge(
    trace: FlowTrace,
    table: OutageTable,
    window: Window,
    settings: Settings,
    stopped_at_ns: int | None,
    noise_ms: float,
) -> FlowEdgeResult:
    """Return all figures of one flow at one edge, on a machine with that noise floor."""
    edge = window.edge
    share = _share(table, window)
    recovery = _recovery(table, share, window, settings)
    gap_ns = _send_gap_ns(trace, share, recovery, window, settings, died=stopped_at_ns is not None)
    span = trace.span(window.start_ns, window.end_ns)
    lost_or_corrupted = _count(trace.missing, span)
    corrupted = int(np.count_nonzero(trace.corrupted[span]))
    late_ns = settings.forwarding_delay_threshold_ms * NS_PER_MS
    delay = trace.arrival_ns[span] - trace.sent_ns[span]
    convergence_ms, reason = _convergence(edge, share, recovery)
    if share is None:
        budget = lossless(
            trace, window.start_ns, window.end_ns, noise_ms, settings.clock_ms, died=stopped_at_ns is not None
        )
    else:
        methods_ns = (share.plbm_ns, share.tbm_ns)
        budget = lossy(share.certain_ns, share.possible_ns, methods_ns, noise_ms, settings.clock_ms)
    return FlowEdgeResult(
        flow=trace.spec.id,
        name=trace.spec.name,
        relation=relation_of(trace.spec, edge),
        control=window.control,
        sent=span.stop - span.start,
        lost=lost_or_corrupted - corrupted,
        corrupted=corrupted,
        late=int(np.count_nonzero(trace.received[span] & (delay > late_ns))),
        duplicated=_count(trace.copies, span),
        reordered=int(np.count_nonzero(trace.reordered[span])),
        outage_plbm_ms=share.plbm_ns / NS_PER_MS if share else 0.0,
        outage_tbm_ms=share.tbm_ns / NS_PER_MS if share else 0.0,
        worst_outage_ms=share.worst_ns / NS_PER_MS if share else 0.0,
        methods_disagree=share is not None and _disagree(table, share, gap_ns, settings),
        outages=share.high - share.low if share else 0,
        longest_hole_packets=int(table.longest_hole[share.low : share.high].max()) if share else 0,
        pattern=pattern_of(table.packets[share.low : share.high] if share else table.packets[:0]),
        first_loss_at_ns=share.first_ns if share else None,
        last_loss_at_ns=share.last_ns if share else None,
        in_outage_at_injection=share is not None and share.carried,
        recovered=recovery.recovered,
        recovered_in_window=recovery.recovered and recovery.in_window,
        validated=recovery.validated,
        recovered_at_ns=recovery.at_ns,
        convergence_ms=convergence_ms,
        convergence_reason=reason,
        resolution_ms=trace.resolution_ns / NS_PER_MS,
        send_gap_ms=gap_ns / NS_PER_MS,
        stopped_by_error=stopped_at_ns is not None and window.start_ns <= stopped_at_ns < window.end_ns,
        goodput=flow_goodput(trace, edge, window.goodput_start_ns, settings),
        budget=budget,
        plane=dict(edge.planes).get(trace.spec.id),
    )


def _count(indices: Ints, span: slice) -> int:
    first, last = np.searchsorted(indices, (span.start, span.stop), "left")
    return int(last - first)


def _share(table: OutageTable, window: Window) -> _Share | None:
    """Return the outages that began in the window, completely, and the rest of one that was open at the injection."""
    trace, inject_ns = table.trace, window.edge.inject_before_ns
    low, high = (int(at) for at in np.searchsorted(table.first_ns, (window.start_ns, window.end_ns), "left"))
    plbm, tbm = table.plbm_ns[low:high].copy(), table.tbm_ns[low:high].copy()
    certain, possible = table.certain_ns[low:high].sum(), table.possible_ns[low:high].sum()
    carried = low > 0 and int(table.last_ns[low - 1]) >= inject_ns
    first_ns = int(table.first_ns[low]) if low < high else 0
    if carried:
        low -= 1
        from_missing = int(np.searchsorted(trace.sent_ns[trace.missing], inject_ns, "left"))
        to_missing = int(np.searchsorted(trace.missing, table.last[low], "right"))
        first = int(trace.missing[from_missing])
        rest = to_missing - from_missing
        inside = int(table.last[low]) - first + 1 - rest
        first_ns = int(trace.sent_ns[first])
        plbm = np.append(rest * trace.period_ns, plbm)
        tbm = np.append(float(table.resumed_clock[low]) - trace.clock_at(first_ns) - inside * trace.period_ns, tbm)
        rest_certain, rest_possible = bounds_since(trace, trace.missing[from_missing:to_missing], inject_ns)
        certain, possible = certain + rest_certain, possible + rest_possible
    if low == high:
        return None
    last_ns = int(table.last_ns[high - 1])
    return _Share(
        low=low,
        high=high,
        carried=carried,
        plbm_ns=float(plbm.sum()),
        tbm_ns=float(tbm.sum()),
        worst_ns=float(plbm.max()),
        certain_ns=float(certain),
        possible_ns=float(possible),
        first_ns=first_ns,
        last_ns=last_ns,
    )


def _recovery(table: OutageTable, share: _Share | None, window: Window, settings: Settings) -> _Recovery:
    """Return the recovery by RFC 6412: no loss for the validation time; a loss within it belongs to the same event."""
    validation_ns = int(settings.validation_s * NS_PER_S)
    if share is None:
        return _Recovery(True, None, window.end_ns - window.edge.inject_before_ns >= validation_ns, True)
    at = share.low
    while True:
        index = recovery_index(table, at, settings.recovery_packets)
        at_ns = None if index is None else int(table.trace.arrival_ns[index])
        if at + 1 >= share.high or (at_ns is not None and int(table.first_ns[at + 1]) >= at_ns + validation_ns):
            break
        at += 1
    last = recovery_index(table, share.high - 1, settings.recovery_packets)
    ended = last is not None
    in_window = last is not None and int(table.trace.arrival_ns[last]) < window.edge.window_end_ns
    validated = ended and at_ns is not None and window.end_ns - at_ns >= validation_ns
    return _Recovery(ended and at_ns is not None, at_ns, validated, in_window)


def _convergence(edge: Edge, share: _Share | None, recovery: _Recovery) -> tuple[float | None, str]:
    if share is None:
        return None, "lost nothing"
    if recovery.at_ns is None or not recovery.recovered:
        return None, "did not recover within the record"
    return (recovery.at_ns - edge.inject_before_ns) / NS_PER_MS, ""


def _send_gap_ns(
    trace: FlowTrace, share: _Share | None, recovery: _Recovery, window: Window, settings: Settings, *, died: bool
) -> int:
    """Return the sender's own largest gap while it could hide or lengthen the outage.

    Without an outage, a sender that has not ``died`` may also have stopped for good.
    """
    inject_ns = window.edge.inject_before_ns
    if share is None:
        end_ns = min(window.end_ns, inject_ns + int(settings.validation_s * NS_PER_S))
        gap_ns = trace.largest_gap_ns(window.start_ns, end_ns)
        last_ns = int(trace.burst_ns[-1] if len(trace.burst_ns) else inject_ns)
        silent_ns = trace.clock_at(end_ns) - trace.clock_at(last_ns)
        return gap_ns if died else max(gap_ns, silent_ns)
    start_ns = min(share.first_ns, inject_ns)
    return trace.largest_gap_ns(start_ns, recovery.at_ns if recovery.at_ns is not None else share.last_ns)


def _disagree(table: OutageTable, share: _Share, gap_ns: int, settings: Settings) -> bool:
    plbm, tbm = table.plbm_ns[share.low : share.high], table.tbm_ns[share.low : share.high]
    # each end of an outage can be off by one send gap
    allowed = table.trace.period_ns + 2 * gap_ns + settings.agreement_ms * NS_PER_MS + 0.01 * plbm
    return bool(np.any(np.abs(plbm - tbm) > allowed))
