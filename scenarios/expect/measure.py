"""The figure an expectation is about, taken from the metrics of a run: one function per metric. Pure.

``scenarios.expect.verdict`` holds the figure against the limit. Figures are in ms, counts or percent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from failover.analysis.budget import Interval, around, of_statistic
from failover.analysis.model import DrillMetrics, EdgeResult, FlowEdgeResult, FlowResult, Relation, settled_window_ns
from scenarios.expect.expectation import At, Expectation, Flows, Metric
from scenarios.expect.figure import Figure, edges_of
from scenarios.expect.impaired import AtEdge, impaired, packets_impaired, receive_gap
from scenarios.expect.lab import converged, job_downtime, order, phase, untouched
from scenarios.expect.ports import port_imbalance, queue_p99, queue_worst
from scenarios.expect.scope import Scope

RELATIONS: Mapping[Flows, frozenset[Relation]] = {
    Flows.HIT: frozenset({Relation.SENDER, Relation.RECEIVER, Relation.BOTH}),
    Flows.SENDER: frozenset({Relation.SENDER, Relation.BOTH}),
    Flows.RECEIVER: frozenset({Relation.RECEIVER, Relation.BOTH}),
    Flows.TRANSIT: frozenset({Relation.TRANSIT}),
    Flows.OTHERS: frozenset({Relation.NONE}),
    Flows.ALL: frozenset(Relation) - {Relation.ABSENT},
}
"""The relations to a fault that each selector takes in."""


@dataclass(frozen=True, slots=True)
class _At:
    """One flow at one edge."""

    edge: EdgeResult
    flow: FlowResult
    result: FlowEdgeResult

    @property
    def dead(self) -> bool:
        """Its queue pair had errored by the end of the window."""
        stopped = self.flow.stopped_at_ns
        return self.result.stopped_by_error or (stopped is not None and stopped < self.edge.edge.window_end_ns)

    @property
    def silent(self) -> bool:
        """Its queue pair had errored before: it sent nothing that could be lost."""
        return self.dead and not self.result.stopped_by_error and not self.result.sent

    @property
    def open_ended(self) -> bool:
        """It lost packets here and never came back."""
        return self.result.stopped_by_error or not self.result.recovered

    @property
    def outage_ms(self) -> float:
        """PLBM; for a flow that never came back at least the time from the first loss to the end of the window."""
        first_ns = self.result.first_loss_at_ns
        if not self.open_ended or first_ns is None:
            return self.result.outage_plbm_ms
        return max(self.result.outage_plbm_ms, (self.edge.edge.window_end_ns - first_ns) / 1e6)

    @property
    def interval_ms(self) -> Interval:
        """Of ``outage_ms``; one that never ended has no upper end, and lasted that long at least."""
        return Interval(self.outage_ms, self.outage_ms) if self.open_ended else self.result.budget.interval

    @property
    def lost(self) -> int:
        return self.result.lost + self.result.corrupted

    @property
    def label(self) -> str:
        return f"{self.result.name} at {self.edge.edge.label}"


def measure(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    """The figure of one expectation (any metric but ``state_restored``)."""
    return _MEASURES[expectation.metric](expectation, metrics)


def _chosen(expectation: Expectation, metrics: DrillMetrics) -> Iterator[_At]:
    edges = edges_of(expectation, metrics)
    indexes = [metrics.edges.index(edge) for edge in edges]
    for edge, at in zip(edges, indexes, strict=True):
        for flow in metrics.flows:
            result = flow.edges[at]
            inside = expectation.scope.has_flow(flow.src_nic, flow.dst_nic, result.plane)
            if inside and _belongs(result, expectation.flows):
                yield _At(edge, flow, result)


def _belongs(result: FlowEdgeResult, flows: Flows) -> bool:
    return result.control if flows is Flows.OTHERS else result.relation in RELATIONS[flows]


def is_about_whole_record(expectation: Expectation) -> bool:
    """Whether flows are counted over the whole run, so that a flow which an edge touches is none of the others."""
    counts = {Metric.PACKETS_LOST, Metric.PACKETS_IMPAIRED, Metric.FLOWS_WITH_LOSS, Metric.QUEUE_PAIR_DEATHS}
    anywhere = not expectation.scope.planes  # a flow changes planes in the course of a run
    return expectation.metric in counts and expectation.edge is At.ANY and expectation.fault is None and anywhere


def _whole_record(expectation: Expectation, metrics: DrillMetrics) -> list[FlowResult] | None:
    """The flows, when the expectation is about the whole record rather than single edges; None otherwise."""
    if not is_about_whole_record(expectation):
        return None
    wanted = RELATIONS[expectation.flows]
    inside = [flow for flow in metrics.flows if expectation.scope.has_flow(flow.src_nic, flow.dst_nic, None)]
    if expectation.flows is Flows.ALL:
        return inside
    if expectation.flows is Flows.OTHERS:
        return [flow for flow in inside if all(edge.relation in wanted for edge in flow.edges)]
    return [flow for flow in inside if any(edge.relation in wanted for edge in flow.edges)]


def _nothing(expectation: Expectation) -> Figure:
    where = f" in {', '.join(expectation.scope.words)}" if expectation.scope else ""
    which = "" if expectation.flows is Flows.ALL else f"{expectation.flows} "
    return Figure(None, f"the run has no {which}flow{where} at such an edge")


def _worst_outage(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    if not metrics.edges:
        return _healthy_outage(expectation.scope, metrics)
    chosen = [at for found in _by_edge(expectation, metrics).values() for at in found]
    if not chosen:
        return _no_outage(expectation, metrics)
    worst = max(chosen, key=lambda at: (at.open_ended, at.outage_ms))
    within = of_statistic((at.interval_ms for at in chosen), max)
    return Figure(worst.outage_ms, _outage_evidence(worst), *within, worst.open_ended)


def _healthy_outage(scope: Scope, metrics: DrillMetrics) -> Figure:
    """In a run without faults: the longest outage of all, seen or between two packets."""
    flows = [flow for flow in metrics.flows if scope.has_flow(flow.src_nic, flow.dst_nic, None)]
    found = [(outage.plbm_ms, flow.name) for flow in flows for outage in flow.longest_outages]
    worst_ms, name = max(found, default=(0.0, ""))
    clock_ms = metrics.settings.clock_ms
    low = max((outage.certain_ms for flow in flows for outage in flow.longest_outages), default=0.0)
    possible = [max(outage.possible_ms, outage.tbm_ms) for flow in flows for outage in flow.longest_outages]
    high = max([worst_ms, *possible, *(flow.largest_send_gap_ms for flow in flows)])
    return Figure(worst_ms, name or "no flow lost anything", max(min(low, worst_ms) - clock_ms, 0.0), high + clock_ms)


def _outage_evidence(at: _At) -> str:
    if at.result.stopped_by_error:
        return f"{at.label}: its queue pair died"
    if at.lost == 0 and at.outage_ms == 0:
        return f"no flow lost anything at {at.edge.edge.label}"
    back = "" if at.result.recovered else ", never recovered"
    return f"{at.label}: {at.lost} packets, by timestamps {at.result.outage_tbm_ms:.3g} ms{back}"


def _by_edge(expectation: Expectation, metrics: DrillMetrics) -> dict[str, list[_At]]:
    """Flows that may have an outage: one whose queue pair had died before has none, neither short nor long."""
    found: dict[str, list[_At]] = {}
    for at in _chosen(expectation, metrics):
        if not at.silent:
            found.setdefault(at.edge.edge.label, []).append(at)
    return found


def _no_outage(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    died = len({at.flow.name for at in _chosen(expectation, metrics)})
    return Figure(None, f"all {died} queue pairs had died before") if died else _nothing(expectation)


def _outage_p95(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    """Of the edge where it is worst; flows that never came back are longer than all others."""
    by_edge = _by_edge(expectation, metrics)
    if not by_edge:
        return _no_outage(expectation, metrics)
    return _of_worst_edge(by_edge, _p95)


def _median_outage(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    by_edge = _by_edge(expectation, metrics)
    if not by_edge:
        return _no_outage(expectation, metrics)
    return _of_worst_edge(by_edge, _median)


_Ranked = tuple[bool, float]
"""Whether an outage is open-ended, and ms: what never came back is longer than all else, whatever was lost."""


def _p95(found: Sequence[_Ranked]) -> _Ranked:
    return sorted(found)[-(-95 * len(found) // 100) - 1]


def _median(found: Sequence[_Ranked]) -> _Ranked:
    ranked = sorted(found)
    low, high = ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2]
    return high[0], (low[1] + high[1]) / 2


def _of_worst_edge(by_edge: Mapping[str, Sequence[_At]], statistic: Callable[[Sequence[_Ranked]], _Ranked]) -> Figure:
    """A statistic of the flows of the edge where it is worst."""
    found = {label: statistic([(at.open_ended, at.outage_ms) for at in ones]) for label, ones in by_edge.items()}
    worst = max(found, key=lambda label: found[label])
    open_ended, value_ms = found[worst]
    low = max(statistic([(at.open_ended, at.interval_ms.low) for at in ones])[1] for ones in by_edge.values())
    high = max(statistic([(at.open_ended, at.interval_ms.high) for at in ones])[1] for ones in by_edge.values())
    return Figure(value_ms, f"{len(by_edge[worst])} flows at {worst}", low, high, open_ended)


def _packets_lost(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    flows = _whole_record(expectation, metrics)
    if flows is not None:
        return _count({flow.name: flow.lost + flow.corrupted for flow in flows}, expectation)
    return _count(_sums(expectation, metrics, lambda at: at.lost), expectation)


def _packets_impaired(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    flows = _whole_record(expectation, metrics)
    if flows is not None:
        counted = _count({flow.name: flow.lost + flow.corrupted + flow.late for flow in flows}, expectation)
        return packets_impaired(counted, [edge for flow in flows for edge in flow.edges])
    chosen = list(_chosen(expectation, metrics))
    counted = _count(_sums(expectation, metrics, lambda at: at.result.impairment.packets), expectation)
    return packets_impaired(counted, [at.result for at in chosen])


def _longest(measure: Callable[[Sequence[AtEdge], float], Figure]) -> Callable[[Expectation, DrillMetrics], Figure]:
    """A figure of the flow that fares worst, of those that may have an outage."""

    def found(expectation: Expectation, metrics: DrillMetrics) -> Figure:
        chosen = [at for flows in _by_edge(expectation, metrics).values() for at in flows]
        if not chosen:
            return _no_outage(expectation, metrics)
        stamps_ms = metrics.noise.delay_variation_ms + metrics.settings.clock_ms
        return measure([AtEdge(at.edge, at.result) for at in chosen], stamps_ms)

    return found


def _flows_with_loss(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    flows = _whole_record(expectation, metrics)
    if flows is not None:
        return _count({flow.name: int(flow.lost + flow.corrupted > 0) for flow in flows}, expectation)
    return _count(_any(expectation, metrics, lambda at: at.lost > 0), expectation)


def _flows_unrecovered(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    return _count(_any(expectation, metrics, lambda at: at.dead or not at.result.recovered_in_window), expectation)


def _queue_pair_deaths(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    flows = _whole_record(expectation, metrics)
    if flows is not None:
        return _count({flow.name: int(flow.stopped_at_ns is not None) for flow in flows}, expectation)
    return _count(_any(expectation, metrics, lambda at: at.result.stopped_by_error), expectation)


def _sums(expectation: Expectation, metrics: DrillMetrics, count: Callable[[_At], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for at in _chosen(expectation, metrics):
        found[at.result.name] = found.get(at.result.name, 0) + count(at)
    return found


def _any(expectation: Expectation, metrics: DrillMetrics, holds: Callable[[_At], bool]) -> dict[str, int]:
    return {name: int(n > 0) for name, n in _sums(expectation, metrics, lambda at: int(holds(at))).items()}


def _count(by_flow: Mapping[str, int], expectation: Expectation) -> Figure:
    if not by_flow:
        return _nothing(expectation)
    worst = max(by_flow, key=lambda name: by_flow[name])
    found = sum(n > 0 for n in by_flow.values())
    evidence = f"{worst} and {found - 1} more" if found > 1 else worst if found else f"none of {len(by_flow)} flows"
    return Figure(sum(by_flow.values()), evidence)


def _goodput(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    """Of before the first fault, in percent, for the NIC and direction that fares worst by the limit."""
    groups: dict[tuple[str, str, str], list[_At]] = {}
    for at in _chosen(expectation, metrics):
        for nic, direction in _ends(at, expectation.scope):
            groups.setdefault((nic, direction, at.edge.edge.label), []).append(at)
    shares = [(share, key) for key, found in groups.items() if (share := _share(expectation.metric, found)) is not None]
    if not shares:
        return Figure(None, "there was no goodput before the first fault") if groups else _nothing(expectation)
    share, key = max(shares, key=lambda found: found[0]) if expectation.bound.is_upper else min(shares)
    nic, direction, label = key
    reach = _goodput_reach(expectation.metric, share, groups[key], metrics)
    return Figure(100 * share, f"{nic} {direction} at {label}", *around(100 * share, 100 * reach))


def _goodput_reach(metric: Metric, share: float, found: Sequence[_At], metrics: DrillMetrics) -> float:
    """How far a share of goodput may be off: a window holds a packet (a burst) more or less, and so does 'before'."""
    edge, settings = found[0].edge.edge, metrics.settings
    window_ns = edge.window_end_ns - edge.inject_before_ns
    window_ns = window_ns if metric is Metric.GOODPUT_DURING else settled_window_ns(edge, settings)
    before_ms = min(settings.goodput_window_s, metrics.noise.window_s) * 1e3
    packet_ms = max(at.result.resolution_ms for at in found)
    return packet_ms / max(window_ns / 1e6, packet_ms) + share * packet_ms / max(before_ms, packet_ms)


def _ends(at: _At, scope: Scope) -> list[tuple[str, str]]:
    """The NICs and directions whose goodput the flow counts for: those asked for or hit, else its source."""
    if scope.of_nics:
        both = ((at.flow.src_nic, "up"), (at.flow.dst_nic, "down"))
        return [(nic, direction) for nic, direction in both if scope.has_nic(nic)]
    ends = [(at.flow.src_nic, "up")] if at.result.relation is not Relation.RECEIVER else []
    receives = at.result.relation in {Relation.RECEIVER, Relation.BOTH}
    return ends + ([(at.flow.dst_nic, "down")] if receives else [])


def _share(metric: Metric, found: list[_At]) -> float | None:
    before = sum(at.flow.edges[0].goodput.before_bps for at in found)
    goodputs = [at.result.goodput for at in found]
    now = sum(g.during_bps if metric is Metric.GOODPUT_DURING else g.after_bps for g in goodputs)
    return now / before if before else None


def _noise_floor(expectation: Expectation, metrics: DrillMetrics) -> Figure:
    noise = metrics.noise
    return Figure(
        noise.noise_floor_ms, f"{noise.window_s:.3g} s of traffic, sender gaps up to {noise.send_gap_max_ms:.3g} ms"
    )


_MEASURES: Mapping[Metric, Callable[[Expectation, DrillMetrics], Figure]] = {
    Metric.WORST_OUTAGE: _worst_outage,
    Metric.MEDIAN_OUTAGE: _median_outage,
    Metric.OUTAGE_P95: _outage_p95,
    Metric.WORST_IMPAIRMENT: _longest(impaired),
    Metric.WORST_RECEIVE_GAP: _longest(receive_gap),
    Metric.PACKETS_LOST: _packets_lost,
    Metric.PACKETS_IMPAIRED: _packets_impaired,
    Metric.FLOWS_WITH_LOSS: _flows_with_loss,
    Metric.FLOWS_UNRECOVERED: _flows_unrecovered,
    Metric.QUEUE_PAIR_DEATHS: _queue_pair_deaths,
    Metric.GOODPUT_DURING: _goodput,
    Metric.GOODPUT_AFTER: _goodput,
    Metric.DETECT: phase,
    Metric.SWITCH: phase,
    Metric.CONVERGE: phase,
    Metric.RECOVER: phase,
    Metric.CONVERGED: converged,
    Metric.UNTOUCHED: untouched,
    Metric.ORDER: order,
    Metric.JOB_DOWNTIME: job_downtime,
    Metric.QUEUE_P99: queue_p99,
    Metric.QUEUE_WORST: queue_worst,
    Metric.PORT_IMBALANCE: port_imbalance,
    Metric.NOISE_FLOOR: _noise_floor,
}
