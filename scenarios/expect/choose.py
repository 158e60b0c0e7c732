"""Choice of the flows and edges for an expectation. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hpn.failover.analysis.model import DrillMetrics, EdgeResult, FlowEdgeResult, FlowResult, Relation
from hpn.failover.analysis.unended import is_open, open_ms
from hpn.scenarios.expect.figure import Figure, edges_of, lower_bound
from hpn.scenarios.expect.selection import Flows, Selection

RELATIONS: Mapping[Flows, frozenset[Relation]] = {
    Flows.HIT: frozenset({Relation.SENDER, Relation.RECEIVER, Relation.BOTH}),
    Flows.SENDER: frozenset({Relation.SENDER, Relation.BOTH}),
    Flows.RECEIVER: frozenset({Relation.RECEIVER, Relation.BOTH}),
    Flows.TRANSIT: frozenset({Relation.TRANSIT}),
    Flows.OTHERS: frozenset({Relation.NONE}),
    Flows.ALL: frozenset(Relation) - {Relation.ABSENT},
}
"""Relations to a fault that match each selector."""


@dataclass(frozen=True, slots=True)
class FlowAt:
    """One flow at one edge."""

    edge: EdgeResult
    flow: FlowResult
    result: FlowEdgeResult
    index: int  # of the edge in the run

    @property
    def dead(self) -> bool:
        """True if its queue pair had failed by the end of the window."""
        stopped = self.flow.stopped_at_ns
        return self.result.stopped_by_error or (stopped is not None and stopped < self.edge.edge.window_end_ns)

    @property
    def silent(self) -> bool:
        """True if its queue pair had failed before, so that it sent nothing that could be lost."""
        return self.dead and not self.result.stopped_by_error and not self.result.sent

    @property
    def open_ended(self) -> bool:
        """True if it lost packets here and never recovered."""
        return is_open(self.result)

    @property
    def never(self) -> bool:
        """True if it never recovers: its queue pair failed, here or in a later window."""
        died = self.result.stopped_by_error or self.flow.stopped_at_ns is not None
        return died and self.open_ended

    @property
    def going_on(self) -> bool:
        """True if it may lose more after the record: it had not recovered, and its queue pair works."""
        return self.flow.edges[-1] is self.result and stuck(self.flow)

    @property
    def open_ms(self) -> float:
        """Certain outage at the end of the window in ms, for a flow that never recovered."""
        return open_ms(self.flow, self.result, self.edge)

    @property
    def outage(self) -> Figure:
        """Outage by PLBM; a lower bound for a flow that never recovered."""
        low_ms, high_ms = self.result.budget.interval
        if self.open_ended:
            return lower_bound(max(low_ms, self.open_ms), self.label, never=self.never)
        return Figure(self.result.outage_plbm_ms, self.label, low_ms, high_ms)

    @property
    def lost(self) -> int:
        """Number of packets lost or corrupted."""
        return self.result.lost + self.result.corrupted

    @property
    def label(self) -> str:
        """Label: 'FLOW at EDGE'."""
        return f"{self.result.name} at {self.edge.edge.label}"


def chosen_flows(expectation: Selection, metrics: DrillMetrics) -> Iterator[FlowAt]:
    """Yield every selected flow at every selected edge."""
    edges = edges_of(expectation, metrics)
    indexes = [metrics.edges.index(edge) for edge in edges]
    for edge, at in zip(edges, indexes, strict=True):
        for flow in metrics.flows:
            result = flow.edges[at]
            inside = expectation.scope.has_flow(flow.src_nic, flow.dst_nic, result.plane)
            if inside and _belongs(result, expectation.flows):
                yield FlowAt(edge, flow, result, at)


def _belongs(result: FlowEdgeResult, flows: Flows) -> bool:
    return result.control if flows is Flows.OTHERS else result.relation in RELATIONS[flows]


def stuck(flow: FlowResult) -> bool:
    """Return True if a flow with a working queue pair had not recovered at the end of the record."""
    return flow.stopped_at_ns is None and bool(flow.edges) and not flow.edges[-1].recovered


def whole_record(expectation: Selection, metrics: DrillMetrics) -> list[FlowResult] | None:
    """Return the flows if the expectation covers the whole record, or None if it covers single edges."""
    if not expectation.over_record:
        return None
    wanted = RELATIONS[expectation.flows]
    inside = [flow for flow in metrics.flows if expectation.scope.has_flow(flow.src_nic, flow.dst_nic, None)]
    if expectation.flows is Flows.ALL:
        return inside
    if expectation.flows is Flows.OTHERS:
        return [flow for flow in inside if all(edge.relation in wanted for edge in flow.edges)]
    return [flow for flow in inside if any(edge.relation in wanted for edge in flow.edges)]


def nothing(expectation: Selection) -> Figure:
    """Return no figure, as no flow matches."""
    where = f" in {', '.join(expectation.scope.words)}" if expectation.scope else ""
    which = "" if expectation.flows is Flows.ALL else f"{expectation.flows} "
    return Figure(None, f"the run has no {which}flow{where} at such an edge")


NOTHING_SENT = Figure(None, "no such flow sent anything")


def flows_by_edge(expectation: Selection, metrics: DrillMetrics) -> dict[str, list[FlowAt]]:
    """Return by edge the flows that may have an outage.

    A flow that sent nothing, or whose queue pair had failed before, has no outage at all.
    """
    found: dict[str, list[FlowAt]] = {}
    for at in chosen_flows(expectation, metrics):
        if not at.silent and (at.result.sent or at.open_ended or at.result.outages):
            found.setdefault(at.edge.edge.label, []).append(at)
    return found


def no_outage(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return no figure, as no flow matches or none could lose anything."""
    chosen = list(chosen_flows(expectation, metrics))
    if not chosen:
        return nothing(expectation)
    if not all(at.silent for at in chosen):
        return NOTHING_SENT
    return Figure(None, f"all {len({at.flow.name for at in chosen})} queue pairs had died before")
