"""Computation of ``DrillMetrics`` from records, events and edges: the one entry point of the analysis.

Changes when a figure of a complete edge or drill is added, or a rule for calling a run inconclusive. Method:
docs/measurement.md after RFC 6412, 6413, 6414 and 6894; constants in ``failover.analysis.settings``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from hpn.failover.analysis.budget import Interval, of_statistic
from hpn.failover.analysis.hostload import HostLoad
from hpn.failover.analysis.metrics.congestion import Crossings, crossings_of, with_congestion
from hpn.failover.analysis.metrics.congestion import of_edge as congestion_of
from hpn.failover.analysis.metrics.doubts import edge_doubts, record_doubts, unexplained_losses
from hpn.failover.analysis.metrics.downtime import downtime
from hpn.failover.analysis.metrics.edge import Window, judge_edge, windows_of
from hpn.failover.analysis.metrics.goodput import add, inherited, per_nic
from hpn.failover.analysis.metrics.impairment import of_edge, with_impairments
from hpn.failover.analysis.metrics.outage import OutageTable, find_outages
from hpn.failover.analysis.metrics.trace import FlowTrace, Traces, build_traces
from hpn.failover.analysis.metrics.transfers import held_up, transfers_of
from hpn.failover.analysis.model import DrillMetrics, Edge, EdgeResult, FlowEdgeResult, FlowResult, Relation, Settings
from hpn.failover.analysis.noise import noise_floor
from hpn.failover.analysis.offered import Offered
from hpn.failover.analysis.phases import phases_of
from hpn.failover.analysis.protocol_events import marks_between
from hpn.testbed.events import Event, EventKind
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.columns import Table
from hpn.traffic.streams.qp import RetryPolicy

RECOMMENDED_FLOWS = 16
LISTED_OUTAGES = 100


def analyse(
    flows: Sequence[FlowSpec],
    sent: Table,
    received: Table,
    events: Sequence[Event],
    edges: Sequence[Edge],
    healthy_ns: tuple[int, int],
    settings: Settings = Settings(),  # noqa: B008 - frozen
    host: HostLoad | None = None,
    record_end_ns: int | None = None,
    offered: Offered | None = None,
) -> DrillMetrics:
    """Return all metrics of one drill, from tables of records as ``traffic.streams.records`` defines them."""
    traces = build_traces(flows, sent, received, settings, record_end_ns)
    return analyse_traces(traces, events, edges, healthy_ns, settings, host, offered)


def analyse_traces(
    traces: Traces,
    events: Sequence[Event],
    edges: Sequence[Edge],
    healthy_ns: tuple[int, int],
    settings: Settings,
    host: HostLoad | None = None,
    offered: Offered | None = None,
    *,
    path_control: bool = True,
) -> DrillMetrics:
    """Return the same for traces already built (the caller also plots them). ``edges`` in order of time."""
    ordered = tuple(sorted(edges, key=lambda edge: edge.inject_before_ns))
    stopped = _stopped_at(events, traces.flows)
    noise = noise_floor(
        traces,
        healthy_ns[0],
        _healthy_until(traces, ordered, healthy_ns[1], settings),
        tick_ns=settings.pacing_tick_ms * 1e6,
    )
    results = _flow_results(traces, ordered, settings, stopped, noise.noise_floor_ms, crossings_of(offered))
    edge_results = tuple(
        replace(
            _edge_result(edge, [flow.edges[at] for flow in results], traces.flows, events, path_control),
            downtime=downtime(traces, ordered[: at + 1], settings.recovery_packets),
        )
        for at, edge in enumerate(ordered)
    )
    at_once = sum(spec.replaces is None for spec in traces.flows)
    doubts = (
        edge_doubts(result, [flow.edges[at] for flow in results], settings) for at, result in enumerate(edge_results)
    )
    transfers = transfers_of(traces, ordered, settings, stopped)
    held = held_up(transfers, {flow.flow: flow.name for flow in results}, settings)
    return DrillMetrics(
        settings=settings,
        flow_count=at_once,
        few_flows=at_once < RECOMMENDED_FLOWS,
        noise=noise,
        resolution_ms=max((flow.resolution_ms for flow in results), default=0.0),
        flows=results,
        edges=edge_results,
        unexplained_lost=sum(flow.unexplained_lost for flow in results),
        host=host,
        inconclusive=(*record_doubts(results, settings), *held, *(line for found in doubts for line in found)),
        unexplained=unexplained_losses(edge_results, results),
        transfers=transfers,
        offered=offered,
    )


def _healthy_until(traces: Traces, edges: tuple[Edge, ...], end_ns: int, settings: Settings) -> int:
    """Return the end of the healthy phase, without the last packets if the first fault dropped them in flight."""
    if not edges:
        return end_ns
    starts = (window.start_ns for trace in traces for window in windows_of(trace, edges[:1], settings))
    return min((end_ns, *starts))


def _stopped_at(events: Iterable[Event], flows: Sequence[FlowSpec]) -> Mapping[int, int]:
    """Return the time of each queue pair's error, by flow id."""
    by_name = {name: flow.id for flow in flows for name in (flow.name, str(flow.id))}
    found: dict[int, int] = {}
    for event in events:
        if event.kind is EventKind.QP and event.what == "error" and event.subject in by_name:
            found.setdefault(by_name[event.subject], event.at_ns)
    return found


def _flow_results(
    traces: Traces,
    edges: tuple[Edge, ...],
    settings: Settings,
    stopped: Mapping[int, int],
    noise_ms: float,
    crossings: Crossings,
) -> tuple[FlowResult, ...]:
    """Return the results of every flow over the whole record; a replacement flow comes after the replaced one."""
    found: dict[int, FlowResult] = {}
    for trace in traces:
        result = _flow_result(trace, edges, settings, stopped.get(trace.spec.id), noise_ms, crossings)
        replaced = trace.spec.replaces
        found[trace.spec.id] = result if replaced is None else inherited(found[replaced], result)
    return tuple(found.values())


def _flow_result(
    trace: FlowTrace,
    edges: tuple[Edge, ...],
    settings: Settings,
    stopped_at_ns: int | None,
    noise_ms: float,
    crossings: Crossings,
) -> FlowResult:
    table = find_outages(trace, settings.merge_packets)
    windows = windows_of(trace, edges, settings)

    def judge(seen: FlowTrace, outages: OutageTable, window: Window) -> FlowEdgeResult:
        return judge_edge(seen, outages, window, settings, stopped_at_ns, noise_ms)

    judged = with_impairments(trace, windows, [judge(trace, table, each) for each in windows], settings, judge)
    corrupted = int(np.count_nonzero(trace.corrupted))
    gap_ns = int(trace.burst_gap_ns.max()) if len(trace.burst_gap_ns) else 0
    late_ns = settings.forwarding_delay_threshold_ms * 1e6
    return FlowResult(
        flow=trace.spec.id,
        name=trace.spec.name,
        src_nic=trace.spec.src_nic,
        dst_nic=trace.spec.dst_nic,
        rate_pps=trace.spec.rate_pps,
        sent_rate_pps=trace.sent_rate_pps,
        sent=len(trace.sent_ns),
        received=int(np.count_nonzero(trace.received)),
        lost=len(trace.missing) - corrupted,
        corrupted=corrupted,
        late=int(np.count_nonzero(trace.delay_ns > late_ns)),
        duplicated=len(trace.copies),
        reordered=int(np.count_nonzero(trace.reordered)),
        in_flight_at_end=int(np.count_nonzero(trace.undecided)),
        unexplained_lost=_unexplained(table, windows),
        unknown=trace.unknown,
        largest_send_gap_ms=gap_ns / 1e6,
        resolution_ms=trace.resolution_ns / 1e6,
        stopped_at_ns=stopped_at_ns,
        outage_count=len(table),
        longest_outages=table.longest(LISTED_OUTAGES),
        edges=with_congestion(trace, windows, judged, crossings, settings, judge),
        replaces=trace.spec.replaces,
        patience_ms=RetryPolicy.of(trace.spec).patience_ns / 1e6,
    )


def _unexplained(table: OutageTable, windows: Sequence[Window]) -> int:
    """Return the number of missing packets sent outside every window, unless their outage began inside one."""
    trace = table.trace
    outside = np.ones(len(trace.missing), np.bool_)
    missing_ns = trace.sent_ns[trace.missing]
    outage_of = np.searchsorted(table.first, trace.missing, "right") - 1
    for window in windows:
        for times in (missing_ns, table.first_ns[outage_of]):
            outside &= (times < window.start_ns) | (times >= window.end_ns)
    return int(np.count_nonzero(outside))


def _edge_result(
    edge: Edge, flows: Sequence[FlowEdgeResult], specs: Sequence[FlowSpec], events: Sequence[Event], path_control: bool
) -> EdgeResult:
    pause_ms = max((spec.pause_ns for spec in specs), default=0) / 1e6
    hit = [flow for flow in flows if flow.relation.is_touched]
    lossy = [flow for flow in hit if flow.outages]
    stuck = [flow for flow in lossy if not flow.recovered]
    worst = max(lossy, key=lambda flow: flow.outage_plbm_ms, default=None)
    times = [flow.convergence_ms for flow in lossy if flow.convergence_ms is not None]
    return EdgeResult(
        edge=edge,
        flows_hit=len(hit),
        flows_lossy=len(lossy),
        flows_unrecovered=len(stuck),
        flows_died=sum(flow.stopped_by_error for flow in flows),
        control_lost=sum(flow.lost + flow.corrupted for flow in flows if flow.control),
        lost=sum(flow.lost for flow in flows),
        worst_outage_plbm_ms=max((flow.outage_plbm_ms for flow in lossy), default=0.0),
        worst_outage_tbm_ms=max((flow.outage_tbm_ms for flow in lossy), default=0.0),
        median_outage_plbm_ms=median(flow.outage_plbm_ms for flow in lossy) if lossy else 0.0,
        median_outage_tbm_ms=median(flow.outage_tbm_ms for flow in lossy) if lossy else 0.0,
        worst_outage_interval_ms=_interval(hit, max),
        median_outage_interval_ms=_interval(lossy or hit, median),
        worst_flow=worst.name if worst else None,
        first_route_convergence_ms=min(times, default=None),
        full_convergence_ms=max(times, default=None) if not stuck else None,
        resolution_ms=max((flow.resolution_ms for flow in hit), default=0.0),
        send_gap_ms=max((flow.send_gap_ms for flow in hit), default=0.0),
        methods_disagree=sum(flow.methods_disagree for flow in hit),
        goodput=add([flow.goodput for flow in flows if flow.relation is not Relation.ABSENT]),
        nics=per_nic(specs, flows),
        phases=phases_of(edge, events, flows, pause_ms, path_control=path_control),
        marks=marks_between(events, edge.inject_before_ns, edge.window_end_ns),
        impairment=of_edge(flows),
        congestion=congestion_of(edge, flows),
    )


def _interval(flows: Sequence[FlowEdgeResult], statistic: Callable[[Sequence[float]], float]) -> Interval:
    """Return the interval of a statistic of the flows' outages."""
    return of_statistic((flow.budget.interval for flow in flows), statistic) if flows else Interval(0.0, 0.0)
