"""Which edge answers for a loss near several: outages about as short as the packet period, edges of other NICs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.metrics.edge import windows_of
from hpn.failover.analysis.metrics.trace import build_traces
from hpn.failover.analysis.model import QUICK, DrillMetrics, Edge, EdgeKind, HitLink
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow, record

FAULT_NS = 4 * S
END_NS = 8 * S
ELSEWHERE = HitLink("p0.s0.h9.r0.0", "p0.s0.h9:r0.0", "p0.s0.t0.0:h9", "p0.s0.h9.r0", "p0.s0.h9", "bond0", "10.0.0.9")


def measure(records: Records, *edges: Edge) -> DrillMetrics:
    return analyse([flow()], *records.tables, [], edges, (S, 3 * S), QUICK)


def moment(at_ns: int, end_ns: int, kind: EdgeKind = EdgeKind.FAILURE, link: HitLink | None = None) -> Edge:
    """An edge whose injection took no time."""
    links = edge(at_ns, end_ns).links if link is None else (link,)
    return Edge("link" if link is None else "other", kind, 0, at_ns, at_ns, end_ns, links)


@given(
    outage_ns=st.integers(MS // 10, 8 * MS),
    phase_ns=st.integers(0, MS),
    delay_ns=st.sampled_from([0, MS // 10, 3 * MS]),
)
def test_a_failure_repaired_within_few_packets_answers_for_all_of_its_loss(
    outage_ns: int, phase_ns: int, delay_ns: int
) -> None:
    start_ns = FAULT_NS + phase_ns
    dead = Dead(start_ns - delay_ns, start_ns + outage_ns - delay_ns)  # by arrival, as a link drops
    down = moment(start_ns, start_ns + outage_ns)
    up = moment(start_ns + outage_ns, END_NS, EdgeKind.REPAIR)
    failure, repair = measure(record(flow(), 7 * S, [dead], delay_ns=delay_ns), down, up).flows[0].edges
    assert failure.outage_plbm_ms == pytest.approx(outage_ns / MS, abs=1)
    assert failure.outage_tbm_ms == pytest.approx(outage_ns / MS, abs=1)
    assert repair.outages == int(repair.in_outage_at_injection), "no outage begins at the repair"


def test_what_a_repair_loses_of_what_is_on_its_way_stays_its_own_when_the_failure_is_over() -> None:
    in_queue = Dead(6 * S - 2 * MS, 6 * S + 5 * MS)
    records = record(flow(), 7 * S, [Dead(FAULT_NS, FAULT_NS + 10 * MS), in_queue], delay_ns=3 * MS)
    metrics = measure(records, moment(FAULT_NS, 6 * S), moment(6 * S, END_NS, EdgeKind.REPAIR))
    assert [found.outage_plbm_ms for found in metrics.flows[0].edges] == [10, 7]


def test_what_a_late_sender_caught_up_with_just_before_the_cut_died_in_it() -> None:
    """After 6 ms without a packet six leave at once, and are on their way as the link is cut: no outage before it."""
    late = Dead(FAULT_NS - 6 * MS - MS // 2, FAULT_NS - MS // 2)
    records = record(flow(), 7 * S, [Dead(late.end_ns, FAULT_NS + 100 * MS)], paused=[late])
    metrics = measure(records, moment(FAULT_NS, END_NS))
    (found,) = metrics.flows[0].edges
    assert (found.lost, metrics.unexplained_lost, found.in_outage_at_injection) == (106, 0, False)
    assert found.outage_plbm_ms == found.outage_tbm_ms == 106


def test_the_rest_of_a_burst_whose_first_packet_had_arrived_was_on_its_way() -> None:
    records = record(flow(), 7 * S, [Dead(FAULT_NS, FAULT_NS + 50 * MS)], burst=2)
    (burst,) = np.flatnonzero(records.sent["sent_ns"] == FAULT_NS - 2 * MS)
    second = records.received["seq"] != records.sent["seq"][burst] + 1
    metrics = measure(Records(records.sent, records.received[second]), moment(FAULT_NS - 3 * MS // 2, END_NS))
    (found,) = metrics.flows[0].edges
    assert (found.lost, found.in_outage_at_injection, metrics.unexplained_lost) == (51, False, 0)


@pytest.mark.parametrize("stuck_ms", [-600, 30])
def test_a_packet_that_was_stuck_lets_no_later_failure_take_the_loss_of_the_one_before(
    stuck_ms: int,
) -> None:
    """Seen in a storm of flaps: what is on its way at a failure was sent after all that has arrived by then."""
    cuts = FAULT_NS, FAULT_NS + 90 * MS
    dead = [Dead(cuts[0], cuts[0] + 3 * MS), Dead(cuts[1] - MS // 2, cuts[1] + 5 * MS)]
    stuck_ns = FAULT_NS + stuck_ms * MS
    records = record(flow(), 7 * S, dead, stuck=Dead(stuck_ns, stuck_ns + 10 * MS))
    metrics = measure(records, moment(cuts[0], cuts[1]), moment(cuts[1], END_NS))
    assert [found.lost for found in metrics.flows[0].edges] == [3, 5]
    assert [found.recovered for found in metrics.flows[0].edges] == [True, True]
    assert all((found.convergence_ms or 0) > 0 for found in metrics.flows[0].edges)


def test_a_packet_that_was_stuck_does_not_hide_that_a_flow_is_in_outage() -> None:
    stuck = Dead(FAULT_NS - 300 * MS, FAULT_NS - 290 * MS)
    records = record(flow(), 7 * S, [Dead(FAULT_NS, FAULT_NS + 200 * MS)], stuck=stuck)
    again = moment(FAULT_NS + 90 * MS, END_NS)
    first, second = measure(records, moment(FAULT_NS, FAULT_NS + 90 * MS), again).flows[0].edges
    assert (first.lost, second.lost, second.in_outage_at_injection) == (90, 110, True)


@pytest.mark.parametrize("later_ms", [1, 5, 15])
@pytest.mark.parametrize("kind", EdgeKind)
def test_an_edge_elsewhere_takes_no_loss_from_the_edge_before_it(later_ms: int, kind: EdgeKind) -> None:
    """Soon after a NIC fails something happens elsewhere; its flow, a packet every 20 ms, has lost none until then."""
    slow, later_ns = flow(rate_pps=50), FAULT_NS + later_ms * MS
    records = record(slow, 7 * S, [Dead(FAULT_NS, FAULT_NS + 100 * MS)], start_ns=S + 18 * MS)
    edges = moment(FAULT_NS, later_ns), moment(later_ns, END_NS, kind, ELSEWHERE)
    metrics = analyse([slow], *records.tables, [], edges, (S, 3 * S), QUICK)
    assert [result.worst_outage_plbm_ms for result in metrics.edges] == [100, 0]
    assert sum(found.lost for found in metrics.flows[0].edges) == 5
    assert not metrics.unexplained


def test_windows_of_many_edges_at_once_meet_in_order() -> None:
    edges = [
        moment(FAULT_NS + at * MS, FAULT_NS + (at + 1) * MS, [*EdgeKind][at // 2 % 2], ELSEWHERE if at % 3 else None)
        for at in range(12)
    ]
    records = record(flow(), 7 * S, [Dead(FAULT_NS, FAULT_NS + 7 * MS)], delay_ns=2 * MS)
    (trace,) = build_traces([flow()], *records.tables, QUICK)
    windows = windows_of(trace, tuple(edges), QUICK)
    assert all(one.start_ns <= one.end_ns for one in windows)
    assert [one.end_ns for one in windows[:-1]] == [one.start_ns for one in windows[1:]]


def test_what_the_first_fault_takes_on_its_way_is_no_noise() -> None:
    in_queue = Dead(FAULT_NS - 3 * MS, FAULT_NS + 10 * MS)
    records = record(flow(), 7 * S, [in_queue], delay_ns=4 * MS)
    found = analyse([flow()], *records.tables, [], [moment(FAULT_NS, END_NS)], (S, FAULT_NS), QUICK)
    assert (found.noise.lost, found.noise.noise_floor_ms) == (0, 0)
    assert found.edges[0].lost == 13


def test_an_edge_elsewhere_just_before_one_that_hits_keeps_the_windows_in_order() -> None:
    """With large delays the second window reaches back beyond the first edge: found by a campaign."""
    elsewhere = replace(moment(FAULT_NS, FAULT_NS + 20 * MS), links=())
    near = moment(FAULT_NS + 20 * MS, END_NS)
    records = record(flow(), 7 * S, [Dead(FAULT_NS - 50 * MS, FAULT_NS - 45 * MS)], delay_ns=80 * MS)
    metrics = measure(records, elsewhere, near)
    assert sum(edge.lost for edge in metrics.edges) + metrics.unexplained_lost == 5
