"""Goodput: payload bits per second by send time, per flow, per NIC and in total; bins for plots only.

Changes when a window or a grouping of goodput changes. Send-time windows keep queueing out of the figure. In a window
only the time counts in which the flow was scheduled to send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hpn.failover.analysis.metrics.trace import Floats, FlowTrace, Traces
from hpn.failover.analysis.model import (
    Edge,
    FlowEdgeResult,
    FlowResult,
    Goodput,
    NicGoodput,
    Relation,
    Settings,
    settled_window_ns,
)
from hpn.traffic.flows.flow import FlowSpec

_NOTHING = Goodput(0.0, 0.0, 0.0)


def flow_goodput(trace: FlowTrace, edge: Edge, not_before_ns: int, settings: Settings) -> Goodput:
    """Return the goodput of one flow around ``edge``; 'before' does not reach beyond ``not_before_ns``, the edge
    before."""
    return _in_windows(trace, edge, not_before_ns, settings, trace.received_between)


def unsent(traces: Traces, edges: Sequence[Edge], settings: Settings) -> Mapping[int, tuple[Goodput, ...]]:
    """Return the most goodput that late senders cost, by flow and edge in order of time; flows without any left out."""
    ordered = sorted(edges, key=lambda edge: edge.inject_before_ns)
    begins = [0, *(edge.inject_before_ns for edge in ordered)]
    found = {
        trace.spec.id: tuple(
            _in_windows(trace, edge, begin_ns, settings, trace.given_up_between)
            for edge, begin_ns in zip(ordered, begins, strict=False)
        )
        for trace in traces.late
    }
    for spec in traces.flows:
        if ordered and spec.replaces in found:
            own, before_bps = found.get(spec.id, (_NOTHING,) * len(ordered)), found[spec.replaces][0].before_bps
            found[spec.id] = (replace(own[0], before_bps=before_bps), *own[1:])
    return found


def _in_windows(
    trace: FlowTrace, edge: Edge, not_before_ns: int, settings: Settings, packets: Callable[[int, int], int]
) -> Goodput:
    """Return the rate of the packets that ``packets`` counts in each window around ``edge``."""
    inject_ns, end_ns = edge.inject_before_ns, edge.window_end_ns
    wide_ns = int(settings.goodput_window_s * 1e9)
    # Begin half a period after the first packet: beginning at the packet itself would count half a packet too much.
    first_ns = int(trace.burst_ns[0] + trace.period_ns / 2) if len(trace.burst_ns) else inject_ns
    before_ns = max(inject_ns - wide_ns, not_before_ns, first_ns)
    settled_ns = end_ns - settled_window_ns(edge, settings)
    windows = ((before_ns, inject_ns), (inject_ns, end_ns), (settled_ns, end_ns))
    return Goodput(*(_bps(trace, start, end, packets) for start, end in windows))


def _bps(trace: FlowTrace, start_ns: int, end_ns: int, packets: Callable[[int, int], int]) -> float:
    sending_ns = trace.clock_at(end_ns) - trace.clock_at(start_ns)
    if sending_ns <= 0:
        return 0.0
    return packets(start_ns, end_ns) * trace.spec.path_mtu * 8 / (sending_ns / 1e9)


def add(goodputs: Sequence[Goodput]) -> Goodput:
    """Sum goodputs over the same windows."""
    return Goodput(
        sum(g.before_bps for g in goodputs), sum(g.during_bps for g in goodputs), sum(g.after_bps for g in goodputs)
    )


def inherited(old: FlowResult, new: FlowResult) -> FlowResult:
    """Give a replacement flow the goodput 'before' of the replaced flow, up to the edge at which it begins."""
    begins = next((at for at, edge in enumerate(new.edges) if edge.relation is not Relation.ABSENT), len(new.edges))
    edges = [
        replace(edge, goodput=replace(edge.goodput, before_bps=old.edges[at].goodput.before_bps))
        if at <= begins
        else edge
        for at, edge in enumerate(new.edges)
    ]
    return replace(new, edges=tuple(edges))


def per_nic(flows: Sequence[FlowSpec], results: Sequence[FlowEdgeResult]) -> tuple[NicGoodput, ...]:
    """Return the goodput of every NIC and direction at one edge, of active flows."""
    groups: dict[tuple[str, str], list[Goodput]] = {}
    for spec, result in zip(flows, results, strict=True):
        if result.relation is Relation.ABSENT:
            continue
        groups.setdefault((spec.src_nic, "up"), []).append(result.goodput)
        groups.setdefault((spec.dst_nic, "down"), []).append(result.goodput)
    return tuple(NicGoodput(nic, direction, add(found)) for (nic, direction), found in sorted(groups.items()))


def goodput_series(
    traces: Iterable[FlowTrace], start_ns: int, end_ns: int, bin_ms: float = 10.0
) -> Mapping[str, Floats]:
    """Return goodput in bins of ``bin_ms`` from ``start_ns``, for plots: 'total', and 'NIC up' / 'NIC down' of each
    NIC."""
    bin_ns = int(bin_ms * 1e6)
    edges_ns = np.arange(start_ns, end_ns + 1, bin_ns)
    series: dict[str, Floats] = {"total": np.zeros(max(len(edges_ns) - 1, 0))}
    for trace in traces:
        counts = np.diff(np.searchsorted(trace.received_sent_ns, edges_ns, "left"))
        bps = counts * (trace.spec.path_mtu * 8 / (bin_ns / 1e9))
        for name in ("total", f"{trace.spec.src_nic} up", f"{trace.spec.dst_nic} down"):
            series[name] = series.get(name, np.zeros(len(bps))) + bps
    return series
