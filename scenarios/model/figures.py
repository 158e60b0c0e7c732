"""Compute a drill's metrics from modelled paths and rates, in the form that analysis produces from packets. PURE.

So the metrics of ``scenarios.expect`` apply to a model as to a run. Values that a flow-level model cannot compute are
None or 0. Metrics that read them are not evaluated (``scenarios.model.answer``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hpn.failover.analysis.budget import Interval, OutageBudget
from hpn.failover.analysis.edges import relations_of
from hpn.failover.analysis.metrics.goodput import add, per_nic
from hpn.failover.analysis.model import (
    DrillMetrics,
    Edge,
    EdgeResult,
    FlowEdgeResult,
    FlowResult,
    Goodput,
    LossPattern,
    NoiseFloor,
    Phase,
    Phases,
    Relation,
    Settings,
    settled_window_ns,
)
from hpn.scenarios.model.paths_over_time import Outage, PathsOverTime
from hpn.scenarios.model.rates import Course, Floats
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.qp import RetryPolicy

_NOT_MODELLED = Phase(None, reason="not modelled")
_PHASES = Phases(*(_NOT_MODELLED,) * 6)
_FEW_FLOWS = 16


@dataclass(frozen=True, eq=False)
class Streams:
    """Streams modelled until ``end_ns``, relative to the start of traffic."""

    flows: tuple[FlowSpec, ...]
    ways: PathsOverTime
    course: Course
    settings: Settings
    healthy_ns: int
    end_ns: int
    _sums: dict[tuple[int, int], tuple[Floats, Floats]] = field(default_factory=dict)

    @cached_property
    def relations(self) -> Sequence[Sequence[Relation]]:
        """Relation of each flow to each edge, edge by edge."""
        return [tuple(relations_of(self.flows, edge)) for edge in self.ways.edges]

    def packets(self, begin_ns: int, end_ns: int) -> tuple[Floats, Floats]:
        """Return the packets that each flow sent and received in a span; cached, as all flows share the windows."""
        if (begin_ns, end_ns) not in self._sums:
            course = self.course
            found = (
                course.packets(course.offered, begin_ns, end_ns),
                course.packets(course.delivered, begin_ns, end_ns),
            )
            self._sums[begin_ns, end_ns] = found
        return self._sums[begin_ns, end_ns]


def metrics_of(streams: Streams) -> DrillMetrics:
    """Return all metrics of modelled streams."""
    results = tuple(_flow(streams, at) for at in range(len(streams.flows)))
    edges = tuple(_edge(streams.flows, at, edge, results) for at, edge in enumerate(streams.ways.edges))
    period_ms = max((1e3 / flow.rate_pps for flow in streams.flows), default=0.0)
    return _metrics(results, edges, streams.settings, streams.healthy_ns, period_ms)


def without_flows(ways: PathsOverTime, settings: Settings, healthy_ns: int) -> DrillMetrics:
    """Return metrics with the edges alone, for a job instead of streams."""
    edges = tuple(_edge((), at, edge, ()) for at, edge in enumerate(ways.edges))
    return _metrics((), edges, settings, healthy_ns, 0.0)


def _metrics(
    flows: tuple[FlowResult, ...],
    edges: tuple[EdgeResult, ...],
    settings: Settings,
    healthy_ns: int,
    resolution_ms: float,
) -> DrillMetrics:
    return DrillMetrics(
        settings=settings,
        flow_count=len(flows),
        few_flows=len(flows) < _FEW_FLOWS,
        noise=NoiseFloor(0.0, 0.0, 0.0, 0.0, 0, 0, healthy_ns / 1e9),
        resolution_ms=resolution_ms,
        flows=flows,
        edges=edges,
        unexplained_lost=0,
        host=None,
        inconclusive=(),
        unexplained=(),
    )


def _flow(streams: Streams, at: int) -> FlowResult:
    flow, course = streams.flows[at], streams.course
    sent, received = (float(of[at]) for of in streams.packets(0, streams.end_ns))
    return FlowResult(
        flow=flow.id,
        name=flow.name,
        src_nic=flow.src_nic,
        dst_nic=flow.dst_nic,
        rate_pps=flow.rate_pps,
        sent_rate_pps=flow.rate_pps,
        sent=round(sent),
        received=round(received),
        lost=max(0, round(sent - received)),
        corrupted=0,
        late=0,
        duplicated=0,
        reordered=0,
        in_flight_at_end=0,
        unexplained_lost=0,
        unknown=0,
        largest_send_gap_ms=0.0,
        resolution_ms=0.0,
        stopped_at_ns=course.died_ns[at],
        outage_count=len(streams.ways.outages_of.get(at, ())),
        longest_outages=(),
        edges=tuple(_flow_edges(streams, at)),
        patience_ms=RetryPolicy.of(flow).patience_ns / 1e6,
    )


def _flow_edges(streams: Streams, at: int) -> Iterator[FlowEdgeResult]:
    control, previous_ns = True, 0
    for number, edge in enumerate(streams.ways.edges):
        relation = streams.relations[number][at]
        control = control and relation is Relation.NONE
        yield _flow_edge(streams, at, number, edge, relation, control=control, previous_ns=previous_ns)
        previous_ns = edge.inject_before_ns


def _flow_edge(
    streams: Streams, at: int, number: int, edge: Edge, relation: Relation, *, control: bool, previous_ns: int
) -> FlowEdgeResult:
    """Return the effect of an edge on a flow; its outages are those that began at the edge."""
    flow, died_ns = streams.flows[at], streams.course.died_ns[at]
    begin_ns, end_ns = edge.inject_before_ns, edge.window_end_ns
    sent, received = (float(of[at]) for of in streams.packets(begin_ns, end_ns))
    outages = streams.ways.outages_of.get(at, ())
    mine = [outage for outage in outages if outage.edge == number]
    ms = sum(_ms(outage, streams.end_ns) for outage in mine)
    lost, died = max(0, round(sent - received)), died_ns is not None and begin_ns <= died_ns < end_ns
    back = all(outage.end_ns is not None for outage in mine)
    low, high = sum(outage.least_ms for outage in mine), sum(outage.most_ms for outage in mine)
    return FlowEdgeResult(
        flow=flow.id,
        name=flow.name,
        relation=relation,
        control=control,
        sent=round(sent),
        lost=lost,
        corrupted=0,
        late=0,
        duplicated=0,
        reordered=0,
        outage_plbm_ms=ms,
        outage_tbm_ms=ms,
        worst_outage_ms=max((_ms(outage, streams.end_ns) for outage in mine), default=0.0),
        methods_disagree=False,
        outages=len(mine),
        longest_hole_packets=0,
        pattern=LossPattern.HOLE if mine else LossPattern.NONE,
        first_loss_at_ns=mine[0].begin_ns if mine else None,
        last_loss_at_ns=mine[-1].end_ns if mine else None,
        in_outage_at_injection=any(_stands(outage, begin_ns) for outage in outages),
        recovered=back and not died,
        recovered_in_window=all(outage.end_ns is not None and outage.end_ns <= end_ns for outage in mine) and not died,
        validated=back,
        recovered_at_ns=mine[-1].end_ns if mine else None,
        convergence_ms=None,
        convergence_reason="not modelled",
        resolution_ms=0.0,
        send_gap_ms=0.0,
        stopped_by_error=died,
        goodput=_goodput(streams, at, edge, previous_ns),
        budget=OutageBudget(min(low, ms), max(high, ms), low, high, 0.0, 0.0),
        plane=None,
    )


def _goodput(streams: Streams, at: int, edge: Edge, previous_ns: int) -> Goodput:
    """Return the goodput over the windows of ``failover.analysis.metrics.goodput``."""
    inject_ns, end_ns = edge.inject_before_ns, edge.window_end_ns
    before_ns = max(inject_ns - int(streams.settings.goodput_window_s * 1e9), previous_ns)
    settled_ns = end_ns - settled_window_ns(edge, streams.settings)
    spans = ((before_ns, inject_ns), (inject_ns, end_ns), (settled_ns, end_ns))
    return Goodput(*(_bps(streams, at, begin, end) for begin, end in spans))


def _bps(streams: Streams, at: int, begin_ns: int, end_ns: int) -> float:
    if end_ns <= begin_ns:
        return 0.0
    received = float(streams.packets(begin_ns, end_ns)[1][at])
    return received * streams.flows[at].path_mtu * 8 / ((end_ns - begin_ns) / 1e9)


def _ms(outage: Outage, end_ns: int) -> float:
    return ((end_ns if outage.end_ns is None else outage.end_ns) - outage.begin_ns) / 1e6


def _stands(outage: Outage, when_ns: int) -> bool:
    return outage.begin_ns < when_ns and (outage.end_ns is None or outage.end_ns > when_ns)


def _edge(specs: Sequence[FlowSpec], at: int, edge: Edge, flows: Sequence[FlowResult]) -> EdgeResult:
    results = [flow.edges[at] for flow in flows]
    hit = [result for result in results if result.relation.is_touched]
    lossy = [result for result in hit if result.lost or result.outages]
    worst = max(hit, key=lambda result: result.outage_plbm_ms, default=None)
    median_ms = float(np.median([result.outage_plbm_ms for result in lossy])) if lossy else 0.0
    worst_ms = worst.outage_plbm_ms if worst is not None else 0.0
    interval = worst.budget.interval if worst is not None else Interval(0.0, 0.0)
    return EdgeResult(
        edge=edge,
        flows_hit=len(hit),
        flows_lossy=len(lossy),
        flows_unrecovered=sum(not result.recovered_in_window for result in hit),
        flows_died=sum(result.stopped_by_error for result in results),
        control_lost=sum(result.lost for result in results if result.control),
        lost=sum(result.lost for result in results),
        worst_outage_plbm_ms=worst_ms,
        worst_outage_tbm_ms=worst_ms,
        median_outage_plbm_ms=median_ms,
        median_outage_tbm_ms=median_ms,
        worst_outage_interval_ms=interval,
        median_outage_interval_ms=Interval(median_ms, median_ms),
        worst_flow=worst.name if worst is not None and worst.outages else None,
        first_route_convergence_ms=None,
        full_convergence_ms=None,
        resolution_ms=0.0,
        send_gap_ms=0.0,
        methods_disagree=0,
        goodput=add([result.goodput for result in results]),
        nics=per_nic(specs, results),
        phases=_PHASES,
    )


def loads(streams: Streams, begin_ns: int, end_ns: int) -> Floats:
    """Return the average load of each directed link in a span, in bit/s."""
    seconds = (end_ns - begin_ns) / 1e9
    return streams.course.packets(streams.course.carried, begin_ns, end_ns) / seconds
