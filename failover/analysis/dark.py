"""NICs in the dark: for how long nothing from or to a NIC arrived at one edge. Pure.

Changes when another kind of silence counts as dark. A NIC is dark in one direction while all of its flows in that
direction have an outage. It is cut off when it is dark up to the end of the edge's window.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

from hpn.failover.analysis.model import DrillMetrics, EdgeResult, FlowResult, Relation

Span = tuple[int, int]
"""Begin and end of an outage in ns."""


class Way(StrEnum):
    """Direction of traffic at a NIC."""

    UP = "up"  # from the NIC
    DOWN = "down"  # to the NIC


@dataclass(frozen=True, slots=True)
class DarkNic:
    """A NIC that was dark. ``ms``: its longest darkness; ``cut_off``: it lasted to the end of the window."""

    nic: str
    way: Way
    ms: float
    cut_off: bool


def dark_nics(metrics: DrillMetrics, edge: EdgeResult, without: Collection[str] = ()) -> tuple[DarkNic, ...]:
    """Return the NICs that were dark after an edge, but for those in ``without``.

    Flows from or to a NIC in ``without`` do not count. If all lost flows of a NIC are with NICs that the edge hits and
    that are dark themselves, it counts only if the edge hits it too: then the partners are the cause.
    """
    spans = {flow.flow: _spans(flow, edge) for flow in _present(metrics, edge, without)}
    flows = [flow for flow in metrics.flows if flow.flow in spans]
    found = [dark for way in Way for dark in _of_way(flows, spans, way, edge)]
    hit = edge.edge.nics & {dark.nic for dark in found}
    return tuple(dark for dark in found if dark.nic in hit or not _partners(flows, dark) <= hit)


def _present(metrics: DrillMetrics, edge: EdgeResult, without: Collection[str]) -> Iterator[FlowResult]:
    at = metrics.edges.index(edge)
    for flow in metrics.flows:
        ended = flow.src_nic in without or flow.dst_nic in without
        if not ended and flow.edges[at].relation is not Relation.ABSENT:
            yield flow


def _of_way(
    flows: Sequence[FlowResult], spans: Mapping[int, Sequence[Span]], way: Way, edge: EdgeResult
) -> Iterator[DarkNic]:
    by_nic: dict[str, list[Sequence[Span]]] = {}
    for flow in flows:
        by_nic.setdefault(flow.src_nic if way is Way.UP else flow.dst_nic, []).append(spans[flow.flow])
    for nic, outages in by_nic.items():
        common = reduce(_common, outages)
        if common:
            longest_ms = max(end - begin for begin, end in common) / 1e6
            yield DarkNic(nic, way, longest_ms, common[-1][1] >= edge.edge.window_end_ns)


def _partners(flows: Iterable[FlowResult], dark: DarkNic) -> set[str]:
    if dark.way is Way.UP:
        return {flow.dst_nic for flow in flows if flow.src_nic == dark.nic}
    return {flow.src_nic for flow in flows if flow.dst_nic == dark.nic}


def _spans(flow: FlowResult, edge: EdgeResult) -> list[Span]:
    """Return the outages of a flow within the window; a queue pair that errored is out from then on."""
    begin, end = edge.edge.inject_before_ns, edge.edge.window_end_ns
    found = [(outage.first_loss_at_ns, outage.resumed_at_ns or end) for outage in flow.longest_outages]
    if flow.stopped_at_ns is not None:
        found.append((flow.stopped_at_ns, end))
    return sorted((max(first, begin), min(last, end)) for first, last in found if first < end and last > begin)


def _common(one: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """Return the times that are in spans of both."""
    both = ((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)
    return sorted((begin, end) for begin, end in both if begin < end)
