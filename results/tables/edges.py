"""Tables of times: figures of every edge, and outages of every flow at it. Pure.

Changes when an edge or a flow gets another figure. An outage without end is a lower bound: ``high_ms`` is then empty.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.failover.analysis.model import EdgeResult, FlowEdgeResult, FlowResult, Relation
from hpn.failover.analysis.unended import is_open, open_ms
from hpn.results.comparison.edge_figures import figures_of
from hpn.results.comparison.figures import Key
from hpn.results.tables.table import Column, Kind, Row, RunFacts, Table
from hpn.results.text.comparison import figure_of

EDGE = (
    Column("edge", Kind.TEXT, "the fault or repair, as 'cut failure 0'"),
    Column("faults", Kind.TEXT, "ids of the drill's faults of that instant, with + between several"),
    Column("kind", Kind.TEXT, "failure or repair"),
    Column("index", Kind.COUNT, "number among the edges of this kind of a flapping fault, from 0"),
)
_OPEN = Column("open_ended", Kind.FLAG, "true: it had not ended, the time is a lower bound and high_ms is empty")
_FIGURES = (
    *EDGE,
    Column(
        "figure",
        Kind.TEXT,
        "as hpn compare names it: worst outage, median outage of flows with loss, detect, switch, converge, ...",
    ),
    Column("measured_ms", Kind.NUMBER, "what was measured; a lower bound where open_ended", "ms"),
    Column("low_ms", Kind.NUMBER, "the least that it may have been", "ms"),
    Column("high_ms", Kind.NUMBER, "the most that it may have been; empty where open_ended", "ms"),
    _OPEN,
)
_FLOWS = (
    *EDGE,
    Column("flow", Kind.COUNT, "number of the flow"),
    Column("name", Kind.TEXT, "its name"),
    Column("src_nic", Kind.TEXT, "NIC that sends"),
    Column("dst_nic", Kind.TEXT, "NIC that receives"),
    Column("rate_pps", Kind.NUMBER, "rate that it was to send with", "packets/s"),
    Column("plane", Kind.COUNT, "plane that carried its data as the edge came; empty where unknown"),
    Column("relation", Kind.TEXT, "what the fault hits of it: sender, receiver, both, transit, none; absent"),
    Column("control", Kind.FLAG, "true: no fault so far touches it, so it must lose nothing"),
    Column("sent", Kind.COUNT, "packets sent in the edge's window"),
    Column("lost", Kind.COUNT, "packets of these that did not arrive at all"),
    Column("corrupted", Kind.COUNT, "packets of these that arrived harmed only"),
    Column("late", Kind.COUNT, "packets of these with more delay than the drill allows"),
    Column("duplicated", Kind.COUNT, "copies beyond the first"),
    Column("reordered", Kind.COUNT, "packets that arrived behind a later one"),
    Column("outages", Kind.COUNT, "number of outages"),
    Column("outage_ms", Kind.NUMBER, "all of them by lost packets (RFC 6414 PLBM); empty where nothing was sent", "ms"),
    Column("low_ms", Kind.NUMBER, "the least that outage_ms may have been", "ms"),
    Column("high_ms", Kind.NUMBER, "the most that it may have been; empty where open_ended", "ms"),
    _OPEN,
    Column("outage_tbm_ms", Kind.NUMBER, "the same by time stamps (RFC 6414 TBM); empty where open_ended", "ms"),
    Column("convergence_ms", Kind.NUMBER, "from the edge to its recovery (RFC 6412); empty without loss or end", "ms"),
    Column("died", Kind.FLAG, "true: its queue pair errored in the window"),
)


def _figures(run: RunFacts) -> Iterator[Row]:
    if run.metrics is None:
        return
    edges = {result.edge.label: result for result in run.metrics.edges}
    for label, figure, measured_ms, interval, open_ended in figures_of(run.metrics):
        yield {
            **edge_cells(edges[label]),
            "figure": figure_of(Key(label, figure, "ms")),
            "measured_ms": measured_ms,
            "low_ms": interval.low,
            "high_ms": None if open_ended else interval.high,
            "open_ended": open_ended,
        }


def _flows(run: RunFacts) -> Iterator[Row]:
    if run.metrics is None:
        return
    for at, edge in enumerate(run.metrics.edges):
        for flow in run.metrics.flows:
            result = flow.edges[at]
            yield {
                **edge_cells(edge),
                "flow": flow.flow,
                "name": flow.name,
                "src_nic": flow.src_nic,
                "dst_nic": flow.dst_nic,
                "rate_pps": flow.rate_pps,
                "plane": result.plane,
                "relation": result.relation.value,
                "control": result.control,
                "sent": result.sent,
                "lost": result.lost,
                "corrupted": result.corrupted,
                "late": result.late,
                "duplicated": result.duplicated,
                "reordered": result.reordered,
                "outages": result.outages,
                **_outage(edge, flow, result),
                "convergence_ms": result.convergence_ms,
                "died": result.stopped_by_error,
            }


def _outage(edge: EdgeResult, flow: FlowResult, result: FlowEdgeResult) -> Row:
    """Return the outage as verdicts judge it; empty for a flow that was absent or sent nothing, as after its death."""
    low_ms, high_ms = result.budget.interval
    if is_open(result):
        low_ms = max(low_ms, open_ms(flow, result, edge))
        return _times(low_ms, low_ms, None, None, open_ended=True)
    if not result.sent or result.relation is Relation.ABSENT:
        return _times(None, None, None, None, open_ended=False)
    return _times(result.outage_plbm_ms, low_ms, high_ms, result.outage_tbm_ms, open_ended=False)


def _times(
    outage_ms: float | None, low_ms: float | None, high_ms: float | None, tbm_ms: float | None, *, open_ended: bool
) -> Row:
    return {
        "outage_ms": outage_ms,
        "low_ms": low_ms,
        "high_ms": high_ms,
        "open_ended": open_ended,
        "outage_tbm_ms": tbm_ms,
    }


def edge_cells(result: EdgeResult | None) -> Row:
    """Return the cells of the columns ``EDGE``; all empty if there is no edge."""
    if result is None:
        return dict.fromkeys(column.name for column in EDGE)
    edge = result.edge
    return {"edge": edge.label, "faults": "+".join(edge.faults), "kind": edge.kind.value, "index": edge.index}


FIGURES = Table("figures", "one row for each edge and figure that it has: times in ms", _FIGURES, _figures)
FLOWS = Table("flows", "one row for each flow and edge: what it lost and how long it was down", _FLOWS, _flows)
