"""Counting: what is lost, late, duplicated, reordered, corrupted or undecided, and which edge answers for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.metrics.goodput import goodput_series
from hpn.failover.analysis.metrics.trace import build_traces
from hpn.failover.analysis.model import DrillMetrics, Edge, EdgeKind, Relation, Settings
from hpn.testbed.events import Event, EventKind
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.columns import InFiles, InMemory, whole
from hpn.traffic.streams.records import FLAG_BAD_ICRC, SENT
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow, record

FAULT_NS = 4 * S
END_NS = 10 * S
QUICK = Settings(validation_s=1.0)
OTHER = flow(1, src="p0.s0.h1.r0", dst="p0.s1.h1.r0")


def measure(
    records: Records,
    *edges: Edge,
    flows: tuple[FlowSpec, ...] = (flow(),),
    events: tuple[Event, ...] = (),
    end_ns: int | None = None,
) -> DrillMetrics:
    chosen = edges or (edge(FAULT_NS, END_NS),)
    return analyse(flows, *records.tables, events, chosen, (S, 3 * S), settings=QUICK, record_end_ns=end_ns)


def test_every_packet_is_accounted_for_once() -> None:
    metrics = measure(record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 30 * MS)], loss=0.01))
    found = metrics.flows[0]
    assert found.sent == found.received + found.lost + found.corrupted + found.in_flight_at_end
    assert found.lost == found.edges[0].lost + found.unexplained_lost


def test_duplicates_do_not_make_up_for_losses() -> None:
    records = record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 10 * MS)])
    copies = records.received[(records.received["sent_ns"] >= 5 * S) & (records.received["sent_ns"] < 5 * S + 7 * MS)]
    found = measure(Records(records.sent, np.concatenate([records.received, copies]))).flows[0]
    assert (found.duplicated, found.lost, found.edges[0].duplicated, found.reordered) == (7, 10, 7, 0)


def test_a_packet_overtaken_by_a_later_one_is_reordered_not_lost() -> None:
    records = record(flow(), 9 * S)
    late = np.flatnonzero(records.received["sent_ns"] == 5 * S)
    records.received["received_ns"][late] += 3 * MS
    found = measure(records).flows[0]
    assert (found.reordered, found.edges[0].reordered, found.lost) == (1, 1, 0)


def test_a_packet_beyond_the_forwarding_delay_threshold_is_late_not_lost() -> None:
    records = record(flow(), 9 * S)
    slow = (records.received["sent_ns"] >= 5 * S) & (records.received["sent_ns"] < 5 * S + 4 * MS)
    records.received["received_ns"][slow] += 150 * MS
    found = measure(records).flows[0]
    assert (found.late, found.edges[0].late, found.lost) == (4, 4, 0)


def test_a_broken_icrc_is_an_outage_but_not_a_loss() -> None:
    records = record(flow(), 9 * S)
    broken = (records.received["sent_ns"] >= 5 * S) & (records.received["sent_ns"] < 5 * S + 20 * MS)
    records.received["flags"][broken] = FLAG_BAD_ICRC
    found = measure(records).flows[0]
    assert (found.corrupted, found.lost) == (20, 0)
    at = found.edges[0]
    assert (at.corrupted, at.lost, at.outage_plbm_ms) == (20, 0, 20)


def test_what_came_corrupted_at_the_very_end_is_no_less_corrupted() -> None:
    records = record(flow(), 9 * S, [Dead(END_NS - 60 * MS, END_NS - 50 * MS), Dead(END_NS - 20 * MS, END_NS)])
    records.received["flags"][records.received["sent_ns"] >= END_NS - 100 * MS] = FLAG_BAD_ICRC
    found = measure(records).flows[0]
    assert (found.corrupted, found.lost, found.in_flight_at_end) == (70, 10, 20)
    assert (found.edges[0].corrupted, found.edges[0].lost) == (70, 10)


def test_what_is_sent_at_the_very_end_is_neither_lost_nor_received() -> None:
    records = record(flow(), 9 * S, [Dead(END_NS - 100 * MS, END_NS)]) + record(OTHER, 9 * S)
    found = measure(records, flows=(flow(), OTHER)).flows[0]
    assert (found.in_flight_at_end, found.lost) == (100, 0)
    waited = measure(records, flows=(flow(), OTHER), end_ns=END_NS + S).flows[0]
    assert (waited.in_flight_at_end, waited.lost) == (0, 100)


def test_what_was_on_its_way_when_the_link_died_belongs_to_the_fault() -> None:
    in_queue = Dead(FAULT_NS - 8 * MS, FAULT_NS + 10 * MS)
    found = measure(record(flow(), 9 * S, [in_queue], delay_ns=10 * MS)).flows[0]
    assert (found.edges[0].lost, found.unexplained_lost) == (18, 0)


def test_loss_outside_every_window_is_unexplained() -> None:
    metrics = measure(record(flow(), 9 * S, [Dead(2 * S, 2 * S + 5 * MS)]))
    assert metrics.unexplained_lost == 5
    assert metrics.noise.lost == 5
    assert metrics.unexplained == (f"5 packets of 1 flow were lost outside every fault window, first {flow().name}",)


def test_the_control_group_is_what_no_fault_touched_yet() -> None:
    records = record(flow(), 9 * S) + record(OTHER, 9 * S, [Dead(5 * S, 5 * S + 3 * MS)])
    metrics = measure(records, flows=(flow(), OTHER))
    result = metrics.edges[0]
    assert [one.edges[0].relation for one in metrics.flows] == [Relation.SENDER, Relation.NONE]
    assert (result.control_lost, result.flows_hit, result.flows_lossy, result.worst_outage_plbm_ms) == (3, 1, 0, 0)
    assert [line for line in metrics.unexplained if "3 packets of 1 flow that no fault had touched" in line]


def test_a_failure_answers_for_its_outage_and_the_repair_for_the_rest_of_it() -> None:
    """Single-ToR: nothing arrives until the repair, and 0.5 s more."""
    records = record(flow(), 9 * S, [Dead(FAULT_NS, 6 * S + 500 * MS)])
    down, up = edge(FAULT_NS, 6 * S), edge(6 * S, END_NS, EdgeKind.REPAIR)
    metrics = measure(records, down, up)
    failure, repair = metrics.flows[0].edges
    assert failure.recovered
    assert not failure.recovered_in_window
    assert (failure.lost, failure.outage_plbm_ms, failure.worst_outage_ms) == (2000, 2500, 2500)
    assert repair.in_outage_at_injection
    assert (repair.lost, repair.outage_plbm_ms, repair.recovered_in_window) == (500, 500, True)
    assert repair.outage_tbm_ms == pytest.approx(500)
    assert repair.convergence_ms == pytest.approx(500.1)
    assert metrics.edge("link", EdgeKind.REPAIR).lost == 500


def test_the_three_figures_of_an_outage_are_told_apart() -> None:
    """Two outages of one edge: the headline adds their losses up, TBM their times, and the longest is one of them."""
    paused = Dead(FAULT_NS + 15 * MS, FAULT_NS + 25 * MS)  # across the end of the first: TBM sees its end only then
    dead = [Dead(FAULT_NS, FAULT_NS + 20 * MS), Dead(FAULT_NS + 100 * MS, FAULT_NS + 110 * MS)]
    metrics = measure(record(flow(), 9 * S, dead, paused=[paused]))
    found, result = metrics.flows[0].edges[0], metrics.edges[0]
    assert (found.outage_plbm_ms, found.worst_outage_ms) == (25, 15)
    assert found.outage_tbm_ms == pytest.approx(35)
    assert (result.worst_outage_plbm_ms, result.median_outage_plbm_ms) == (25, 25)
    assert result.worst_outage_tbm_ms == result.median_outage_tbm_ms == pytest.approx(35)


def test_each_edge_of_a_flap_has_its_own_outage() -> None:
    edges, dead = [], []
    for index in range(5):
        at_ns = FAULT_NS + index * S
        edges.append(edge(at_ns, at_ns + S // 2, index=index))
        edges.append(edge(at_ns + S // 2, at_ns + S, EdgeKind.REPAIR, index))
        dead.append(Dead(at_ns, at_ns + (10 + index) * MS))
    metrics = measure(record(flow(), 9 * S, dead), *edges)
    failures = [result for result in metrics.edges if result.edge.kind is EdgeKind.FAILURE]
    repairs = [result for result in metrics.edges if result.edge.kind is EdgeKind.REPAIR]
    assert [result.worst_outage_plbm_ms for result in failures] == [10, 11, 12, 13, 14]
    assert [result.lost for result in repairs] == [0] * 5
    assert metrics.unexplained_lost == 0
    # the next edge comes before the validation time is over
    assert not any(metrics.flows_at(result)[0].validated for result in metrics.edges[:-1])


def test_a_flap_faster_than_recovery_does_not_cut_an_outage_short() -> None:
    edges = [
        edge(
            FAULT_NS + i * 20 * MS, FAULT_NS + (i + 1) * 20 * MS, EdgeKind.REPAIR if i % 2 else EdgeKind.FAILURE, i // 2
        )
        for i in range(10)
    ]
    metrics = measure(record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 190 * MS)]), *edges)
    assert metrics.edges[0].worst_outage_plbm_ms == 190
    assert [result.lost for result in metrics.edges] == [20] * 9 + [10]


def test_a_queue_pair_that_errors_stops_counting_losses_and_delivers_nothing() -> None:
    alive = record(flow(), 4 * S)  # sends from 1 s to 5 s, then its queue pair errors
    dead = Dead(FAULT_NS, 100 * S)
    records = record(flow(), 4 * S, [dead]) + record(OTHER, 9 * S)
    error = Event(5 * S, EventKind.QP, "p0.s0.h0", flow().name, "error")
    metrics = measure(records, flows=(flow(), OTHER), events=(error,))
    found = metrics.flows[0]
    assert found.sent == len(alive.sent)
    assert (found.lost, found.stopped_at_ns) == (1000, 5 * S)
    assert found.edges[0].stopped_by_error
    assert not found.edges[0].recovered
    assert found.edges[0].goodput.during_bps == 0
    assert found.edges[0].goodput.after_bps == 0
    assert metrics.edges[0].flows_died == 1


def test_goodput_is_payload_by_send_time_per_flow_and_nic() -> None:
    records = record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 600 * MS)]) + record(OTHER, 9 * S)
    result = measure(records, flows=(flow(), OTHER)).edges[0]
    rate_bps = flow().goodput_bps
    hit = next(nic for nic in result.nics if nic.nic == flow().src_nic)
    assert hit.direction == "up"
    assert hit.goodput.before_bps == pytest.approx(rate_bps)
    assert hit.goodput.during_bps == pytest.approx(0.9 * rate_bps)
    assert hit.goodput.after_bps == pytest.approx(rate_bps)
    assert result.goodput.during_bps == pytest.approx(1.9 * rate_bps)
    assert [(nic.nic, nic.direction) for nic in result.nics] == [
        (flow().src_nic, "up"),
        (OTHER.src_nic, "up"),
        (flow().dst_nic, "down"),
        (OTHER.dst_nic, "down"),
    ]


def test_the_series_adds_up_to_what_arrived() -> None:
    records = record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 100 * MS)])
    traces = build_traces([flow()], *records.tables, QUICK)
    series = goodput_series(traces, S, END_NS)
    assert set(series) == {"total", f"{flow().src_nic} up", f"{flow().dst_nic} down"}
    assert series["total"].sum() * 0.01 == len(records.received) * 1024 * 8
    assert (series["total"][300:310] == 0).all()


def test_a_slow_sender_and_a_damaged_record_are_inconclusive() -> None:
    slow = measure(record(flow(rate_pps=900), 9 * S))
    assert slow.inconclusive == (f"1 senders were slower than 98 % of their rate, worst {flow().name}: 90.0 %",)
    whole = record(flow(), 9 * S)
    damaged = measure(Records(whole.sent[:-1000], whole.received))
    assert damaged.inconclusive == (f"1000 packets were received but never recorded as sent, first flow {flow().name}",)
    nothing = measure(Records(whole.sent[:0], whole.received[:0]))
    assert nothing.inconclusive[0] == "no packet was sent: nothing was measured"


def test_a_slow_injection_is_inconclusive() -> None:
    slow = Edge("link", EdgeKind.FAILURE, 0, FAULT_NS, FAULT_NS + 30 * MS, END_NS, edge(0, 0).links)
    assert measure(record(flow(), 9 * S), slow).inconclusive == (
        "link failure 0: the injection took 30.0 ms, longer than the claimed 20 ms",
    )
    boot = replace(slow, kind=EdgeKind.REPAIR)
    assert measure(record(flow(), 9 * S), boot).inconclusive == ()


def test_records_may_come_in_any_order_from_several_files_and_end_in_half_a_record(tmp_path: Path) -> None:
    records = record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 10 * MS)], first_seq=5)
    rng = np.random.default_rng(3)
    shuffled = Records(rng.permutation(records.sent), rng.permutation(records.received))
    for name, part in (("a", shuffled.sent[:100]), ("b", shuffled.sent[100:])):
        (tmp_path / name).write_bytes(part.tobytes() + b"half a record"[: 13 if name == "b" else 0])
    sent = InFiles([tmp_path / "a", tmp_path / "b"], SENT)
    assert np.array_equal(whole(sent), shuffled.sent)
    found = analyse([flow()], sent, InMemory(shuffled.received), (), [edge(FAULT_NS, END_NS)], (S, 3 * S), QUICK)
    assert found == measure(records)


def test_holes_in_the_numbering_are_not_losses() -> None:
    """A worker that started anew left sequence numbers out: what was never sent cannot be lost."""
    records = record(flow(), 9 * S)
    skip = slice(2000, 3000)
    found = measure(Records(np.delete(records.sent, skip), np.delete(records.received, skip))).flows[0]
    assert (found.sent, found.lost, found.unknown) == (8000, 0, 0)


def test_few_flows_are_said_so() -> None:
    assert measure(record(flow(), 9 * S)).few_flows
    many = tuple(flow(n) for n in range(16))
    records = record(many[0], 9 * S)
    for one in many[1:]:
        records += record(one, 9 * S)
    assert not measure(records, flows=many).few_flows


@pytest.mark.parametrize("at_ns", [3 * S - 1, 3 * S - 25 * MS, 3 * S - 49 * MS])
def test_goodput_before_a_fault_is_the_rate_however_few_packets_there_are(at_ns: int) -> None:
    slow = flow(rate_pps=20)
    metrics = analyse([slow], *record(slow, 4 * S).tables, [], [edge(at_ns, 5 * S)], (S, 3 * S), Settings())
    exact = 20 * 1024 * 8
    assert metrics.edges[0].goodput.before_bps == pytest.approx(exact, rel=0.51 / 39)  # half a packet
