"""Metrics with known contents, so that verdicts can be tested as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hpn.failover.analysis.budget import Interval, outage_budget
from hpn.failover.analysis.model import (
    DrillMetrics,
    Edge,
    EdgeKind,
    EdgeResult,
    FlowEdgeResult,
    FlowResult,
    Goodput,
    HitLink,
    LossPattern,
    NoiseFloor,
    Phase,
    Phases,
    Relation,
)
from hpn.failover.analysis.settings import QUICK
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.testbed.files.document import parse

MS = 10**6
RATE_PPS = 1000.0

NO_PHASE = Phase(None, reason="did not happen")
CALM = Goodput(100.0, 100.0, 100.0)


def edge(kind: EdgeKind, at_ms: int, end_ms: int, fault: str = "cut") -> Edge:
    hit = HitLink("p0.s0.h0.r0.0", "p0.s0.h0:r0p0", "p0.s0.t0.0:h0r0", "p0.s0.h0.r0", "p0.s0.h0", "bond0", "10.0.0.1")
    return Edge(fault, kind, 0, at_ms * MS, at_ms * MS + 1000, end_ms * MS, (hit,))


def at_edge(
    name: str,
    relation: Relation,
    lost: int = 0,
    *,
    recovered: bool = True,
    in_window: bool = True,
    died: bool = False,
    goodput: Goodput = CALM,
    at_ms: int = 1000,
) -> FlowEdgeResult:
    """``lost`` packets of a 1,000 pps flow: outages of as many ms, by time stamps longer, the longest alone shorter.

    The three figures differ, so that whoever takes the wrong one is found out.
    """
    first_ns = at_ms * MS if lost else None
    return FlowEdgeResult(
        flow=0,
        name=name,
        relation=relation,
        control=relation is Relation.NONE,
        sent=2000,
        lost=lost,
        corrupted=0,
        late=0,
        duplicated=0,
        reordered=0,
        outage_plbm_ms=float(lost),
        outage_tbm_ms=1.02 * lost,
        worst_outage_ms=0.75 * lost,
        methods_disagree=False,
        outages=int(lost > 0),
        longest_hole_packets=lost,
        pattern=LossPattern.HOLE if lost else LossPattern.NONE,
        first_loss_at_ns=first_ns,
        last_loss_at_ns=first_ns,
        in_outage_at_injection=False,
        recovered=recovered,
        recovered_in_window=recovered and in_window,
        validated=recovered,
        recovered_at_ns=None,
        convergence_ms=float(lost) if lost and recovered else None,
        convergence_reason="",
        resolution_ms=1.0,
        send_gap_ms=1.0,
        stopped_by_error=died,
        goodput=goodput,
        budget=outage_budget(max(lost - 1.0, 0.0), lost + 1.0, (float(lost), 1.02 * lost), 0.0, 0.0),
    )


def flow(name: str, *edges: FlowEdgeResult, unexplained: int = 0, src: str = "a", dst: str = "b") -> FlowResult:
    died = any(e.stopped_by_error for e in edges)
    return FlowResult(
        flow=0,
        name=name,
        src_nic=src,
        dst_nic=dst,
        rate_pps=RATE_PPS,
        sent_rate_pps=RATE_PPS,
        sent=4000,
        received=4000 - sum(e.lost for e in edges) - unexplained,
        lost=sum(e.lost for e in edges) + unexplained,
        corrupted=0,
        late=0,
        duplicated=0,
        reordered=0,
        in_flight_at_end=0,
        unexplained_lost=unexplained,
        unknown=0,
        largest_send_gap_ms=1.0,
        resolution_ms=1.0,
        stopped_at_ns=1500 * MS if died else None,
        outage_count=sum(e.outages for e in edges),
        longest_outages=(),
        edges=tuple(edges),
    )


def edge_result(edge: Edge, flows: Sequence[FlowEdgeResult], phases: Phases | None = None) -> EdgeResult:
    hit = [f for f in flows if f.relation is not Relation.NONE]
    lossy = [f for f in hit if f.lost]
    return EdgeResult(
        edge=edge,
        flows_hit=len(hit),
        flows_lossy=len(lossy),
        flows_unrecovered=sum(not f.recovered for f in lossy),
        flows_died=sum(f.stopped_by_error for f in flows),
        control_lost=sum(f.lost for f in flows if f.relation is Relation.NONE),
        lost=sum(f.lost for f in flows),
        worst_outage_plbm_ms=max((f.outage_plbm_ms for f in lossy), default=0.0),
        worst_outage_tbm_ms=max((f.outage_tbm_ms for f in lossy), default=0.0),
        median_outage_plbm_ms=0.0,
        median_outage_tbm_ms=0.0,
        worst_outage_interval_ms=Interval(0.0, 0.0),
        median_outage_interval_ms=Interval(0.0, 0.0),
        worst_flow=lossy[0].name if lossy else None,
        first_route_convergence_ms=None,
        full_convergence_ms=None,
        resolution_ms=1.0,
        send_gap_ms=1.0,
        methods_disagree=0,
        goodput=CALM,
        nics=(),
        phases=phases or Phases(NO_PHASE, NO_PHASE, NO_PHASE, NO_PHASE, NO_PHASE, NO_PHASE),
    )


def metrics(edges: Sequence[Edge], flows: Sequence[FlowResult], phases: Phases | None = None) -> DrillMetrics:
    return DrillMetrics(
        settings=QUICK,
        flow_count=len(flows),
        few_flows=True,
        noise=NoiseFloor(12.0, 5.0, 3.0, 0.2, 0, 4, 1.5),
        resolution_ms=1.0,
        flows=tuple(flows),
        edges=tuple(edge_result(e, [f.edges[at] for f in flows], phases) for at, e in enumerate(edges)),
        unexplained_lost=sum(f.unexplained_lost for f in flows),
        host=None,
        inconclusive=(),
        unexplained=(),
    )


FAILURE, REPAIR = edge(EdgeKind.FAILURE, 1000, 3000), edge(EdgeKind.REPAIR, 3000, 6000)


def link_down(*, sender: int = 5, receiver: int = 40, control: int = 0, unexplained: int = 0) -> DrillMetrics:
    """What a sending, a receiving and a control flow lost at the failure of a link; its repair is clean."""
    during = Goodput(100.0, 96.0, 100.0)
    return metrics(
        (FAILURE, REPAIR),
        (
            flow("tx", at_edge("tx", Relation.SENDER, sender, goodput=during), at_edge("tx", Relation.SENDER), src="n"),
            flow(
                "rx",
                at_edge("rx", Relation.RECEIVER, receiver, goodput=during),
                at_edge("rx", Relation.RECEIVER),
                dst="n",
            ),
            flow("c", at_edge("c", Relation.NONE, control), at_edge("c", Relation.NONE), unexplained=unexplained),
        ),
    )


def stalled(*, died: bool) -> DrillMetrics:
    """The receiving flow stops at the failure; it comes back with the repair, or its queue pair dies after 0.5 s."""
    lost = 500 if died else 2000
    dead = Goodput(100.0, 0.0, 0.0)
    failure = at_edge("rx", Relation.RECEIVER, lost, recovered=not died, in_window=False, died=died, goodput=dead)
    repair = at_edge("rx", Relation.RECEIVER, goodput=dead if died else replace(CALM, before_bps=0.0))
    return metrics((FAILURE, REPAIR), (flow("rx", failure, repair, dst="n"),))


DRILL = """
drill: cut
summary: one link is cut
topology: tiny
timeline:
  faults: [{{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 2 s}}]
expect:
  - {}
"""


def drill(expectation: str) -> Drill:
    """A cut link and one expectation of it."""
    return drill_from(parse(DRILL.format(expectation), "d.yaml"), Path())
