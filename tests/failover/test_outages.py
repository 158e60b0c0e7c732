"""The measured outage against the true one: every figure of the method where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.metrics.outage import find_outages, pattern_of, recovery_index
from hpn.failover.analysis.metrics.trace import FlowTrace, build_traces
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, FlowEdgeResult, LossPattern, Settings
from hpn.testbed.events import Event, EventKind
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow, record

FAULT_NS = 4 * S
END_NS = 10 * S
HEALTHY = (1 * S, 3 * S)
FULL = Settings()


def measure(records: Records, rate_pps: float = 1000, method: Settings = FULL) -> tuple[FlowEdgeResult, DrillMetrics]:
    metrics = analyse([flow(rate_pps=rate_pps)], *records.tables, [], [edge(FAULT_NS, END_NS)], HEALTHY, method)
    return metrics.flows[0].edges[0], metrics


def trace_of(records: Records, rate_pps: float = 1000) -> FlowTrace:
    return next(iter(build_traces([flow(rate_pps=rate_pps)], *records.tables, Settings())))


@settings(max_examples=60, deadline=None)
@given(
    outage_ns=st.integers(1 * MS, 1500 * MS),
    offset_ns=st.integers(0, 3 * MS),
    rate_pps=st.sampled_from([500.0, 1000.0, 10_000.0]),
)
def test_an_outage_is_measured_to_one_packet_period_by_both_methods(
    outage_ns: int, offset_ns: int, rate_pps: float
) -> None:
    start_ns = FAULT_NS + offset_ns
    records = record(flow(rate_pps=rate_pps), 9 * S, [Dead(start_ns, start_ns + outage_ns)])
    result, _ = measure(records, rate_pps)
    period_ms = 1e3 / rate_pps
    assert abs(result.outage_plbm_ms - outage_ns / MS) <= period_ms + 1e-6
    assert abs(result.outage_tbm_ms - outage_ns / MS) <= period_ms + 1e-6
    assert not result.methods_disagree
    assert result.resolution_ms == period_ms


@settings(max_examples=60, deadline=None)
@given(
    outage_ns=st.integers(5 * MS, 500 * MS),
    jitter_ns=st.integers(0, 8 * MS),
    burst=st.sampled_from([1, 4, 16]),
    seed=st.integers(0, 1000),
)
def test_a_jittery_bursty_sender_costs_no_more_than_its_lateness(
    outage_ns: int, jitter_ns: int, burst: int, seed: int
) -> None:
    records = record(
        flow(rate_pps=4000), 9 * S, [Dead(FAULT_NS, FAULT_NS + outage_ns)], jitter_ns=jitter_ns, burst=burst, seed=seed
    )
    result, _ = measure(records, 4000)
    assert abs(result.outage_plbm_ms - outage_ns / MS) <= result.resolution_ms + jitter_ns / MS + 1e-6
    assert not result.methods_disagree
    assert result.recovered
    assert result.resolution_ms == burst / 4


def test_recovery_is_told_from_the_injection_to_the_first_packet_that_arrived() -> None:
    records = record(flow(), 9 * S, [Dead(FAULT_NS + 5 * MS, FAULT_NS + 25 * MS)], delay_ns=MS // 2)
    result, metrics = measure(records)
    assert result.first_loss_at_ns == FAULT_NS + 5 * MS
    assert result.last_loss_at_ns == FAULT_NS + 24 * MS
    assert result.recovered_at_ns == FAULT_NS + 25 * MS + MS // 2
    assert result.convergence_ms == pytest.approx(25.5)
    assert result.validated
    assert metrics.edges[0].first_route_convergence_ms == metrics.edges[0].full_convergence_ms == result.convergence_ms


def test_a_sender_pause_is_no_outage_but_makes_a_fine_resolution_unclaimable() -> None:
    records = record(flow(), 9 * S)
    packets = records.sent["sent_ns"]
    pause = (packets >= FAULT_NS) & (packets < FAULT_NS + 40 * MS)
    for array in (records.sent, records.received):
        array["sent_ns"][pause] = FAULT_NS + 40 * MS  # late, then caught up
    records.received["received_ns"][pause] = FAULT_NS + 41 * MS
    result, metrics = measure(records)
    assert result.outage_plbm_ms == result.outage_tbm_ms == 0
    assert result.send_gap_ms == pytest.approx(41, abs=1)
    assert [line for line in metrics.inconclusive if "claimed resolution of 20 ms" in line]


@pytest.mark.parametrize("sends_ns", [0, 3 * S])
def test_a_sender_that_falls_silent_for_good_without_dying_is_no_flow_that_lost_nothing(sends_ns: int) -> None:
    other = flow(1, src="p0.s0.h1.r0", dst="p0.s1.h1.r0")
    both = record(flow(), sends_ns) + record(other, 9 * S)
    said = [Event(FAULT_NS + 500 * MS, EventKind.QP, "p0.s0.h0", flow().name, "error")]
    silent, died = (
        analyse([flow(), other], *both.tables, events, [edge(FAULT_NS, END_NS)], HEALTHY, Settings())
        for events in ([], said)
    )
    assert silent.inconclusive[0].startswith("link failure 0: 1 senders paused longer than the claimed resolution")
    assert not died.inconclusive


def test_a_sender_that_stops_pacing_in_the_outage_makes_the_methods_disagree() -> None:
    records = record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 100 * MS)])
    in_outage = (records.sent["sent_ns"] >= FAULT_NS) & (records.sent["sent_ns"] < FAULT_NS + 100 * MS)
    thinned = records.sent[~(in_outage & (records.sent["seq"] % 2 == 1))]
    result, metrics = measure(Records(thinned, records.received))
    assert result.outage_plbm_ms == 50
    assert result.outage_tbm_ms == pytest.approx(100)
    assert result.methods_disagree
    assert [line for line in metrics.inconclusive if "disagree" in line]


def test_holes_fewer_than_m_packets_apart_are_one_outage_and_the_packets_between_are_no_loss() -> None:
    holes = [Dead(FAULT_NS, FAULT_NS + 10 * MS), Dead(FAULT_NS + 14 * MS, FAULT_NS + 20 * MS)]
    table = find_outages(trace_of(record(flow(), 9 * S, holes)), merge_packets=5)
    assert (len(table), int(table.holes[0]), int(table.packets[0]), int(table.longest_hole[0])) == (1, 2, 16, 10)
    assert table.outage(0).plbm_ms == pytest.approx(16)
    assert table.outage(0).tbm_ms == pytest.approx(16)


def test_holes_m_packets_apart_are_two_outages() -> None:
    holes = [Dead(FAULT_NS, FAULT_NS + 10 * MS), Dead(FAULT_NS + 15 * MS, FAULT_NS + 20 * MS)]
    table = find_outages(trace_of(record(flow(), 9 * S, holes)), merge_packets=5)
    assert table.packets.tolist() == [10, 5]
    assert [outage.packets for outage in table.longest(1)] == [10]


@settings(max_examples=80, deadline=None)
@given(
    fates=st.lists(st.sampled_from(["received", "received", "missing", "late"]), min_size=1, max_size=60),
    merge=st.integers(1, 6),
)
def test_grouping_equals_the_definition_read_aloud(fates: list[str], merge: int) -> None:
    alive = [fate != "missing" for fate in fates]
    overtaken = [fate == "late" and "received" in fates[at:] for at, fate in enumerate(fates)]
    records = record(flow(), len(alive) * MS)
    records.received["received_ns"][np.array(fates) == "late"] += S // 2
    kept = Records(records.sent, records.received[np.array(alive)])
    trace = next(iter(build_traces([flow()], *kept.tables, Settings(), record_end_ns=100 * S)))
    groups: list[list[int]] = []
    in_order = merge  # packets since the last that was missing or overtaken
    recovered = True
    for index, received in enumerate(alive):
        in_order = in_order + 1 if received and not overtaken[index] else 0
        recovered = recovered or in_order >= merge
        if received:
            continue
        if recovered:
            groups.append([])
        groups[-1].append(index)
        recovered = False
    table = find_outages(trace, merge)
    assert table.first.tolist() == [group[0] for group in groups]
    assert table.last.tolist() == [group[-1] for group in groups]
    assert table.packets.tolist() == [len(group) for group in groups]
    assert int(table.holes.sum()) == sum(1 for i, got in enumerate(alive) if not got and (i == 0 or alive[i - 1]))
    assert table.open.tolist() == [group[-1] == len(alive) - 1 for group in groups]


def test_holes_between_which_all_packets_were_overtaken_are_one_outage() -> None:
    """Seen with a link that blinked for 5 ms: the first edge's outage never recovered, the second's did at once."""
    holes = [Dead(FAULT_NS, FAULT_NS + MS), Dead(FAULT_NS + 7 * MS, FAULT_NS + 10 * MS)]
    held = Dead(FAULT_NS + MS, FAULT_NS + 7 * MS)
    table = find_outages(trace_of(record(flow(), 9 * S, holes, stuck=held)), 5)
    assert (len(table), table.outage(0).packets, table.outage(0).holes) == (1, 4, 2)
    assert recovery_index(table, 0, 5) == int(table.last[0]) + 1


def test_recovery_asks_for_k_packets_in_order() -> None:
    records = record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 10 * MS)])
    after = np.flatnonzero(records.received["sent_ns"] >= FAULT_NS + 10 * MS)
    times = records.received["received_ns"]
    times[after[2]], times[after[3]] = times[after[3]], times[after[2]]
    table = find_outages(trace_of(records), 5)
    assert recovery_index(table, 0, 5) == int(table.last[0]) + 3 + 1  # after the packet that was overtaken


@pytest.mark.parametrize("received", [0, 1, 3, 5])
def test_a_record_that_ends_soon_after_a_loss_asks_for_no_more_than_it_has(received: int) -> None:
    """Random loss that lasts until the end of the record would seem never to end, whatever its last packets did."""
    end_ns = S + 9 * S
    last = Dead(end_ns - (received + 1) * MS, end_ns - received * MS)
    result, metrics = measure(record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 10 * MS), last]))
    assert (result.lost, metrics.flows[0].in_flight_at_end) == ((11, 0) if received else (10, 1))
    assert result.recovered


def test_scattered_loss_is_told_from_one_hole() -> None:
    scattered, _ = measure(record(flow(), 9 * S, loss=0.02, seed=7))
    hole, _ = measure(record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 50 * MS)]))
    nothing, _ = measure(record(flow(), 9 * S))
    assert (scattered.pattern, hole.pattern, nothing.pattern) == (
        LossPattern.SCATTERED,
        LossPattern.HOLE,
        LossPattern.NONE,
    )
    assert scattered.longest_hole_packets <= 3
    assert hole.longest_hole_packets == 50
    assert pattern_of(np.array([10, 8])) is LossPattern.HOLES


def test_a_loss_within_the_validation_time_belongs_to_the_same_convergence_a_later_one_does_not() -> None:
    first = Dead(FAULT_NS, FAULT_NS + 10 * MS)
    soon = record(flow(), 9 * S, [first, Dead(FAULT_NS + 510 * MS, FAULT_NS + 520 * MS)])
    late = record(flow(), 9 * S, [first, Dead(FAULT_NS + 2 * S, FAULT_NS + 2 * S + 10 * MS)])
    quick = Settings(validation_s=1.0)
    assert measure(soon, method=quick)[0].convergence_ms == pytest.approx(520.1)
    relapsed = measure(late, method=quick)[0]
    assert relapsed.convergence_ms == pytest.approx(10.1)
    assert relapsed.outage_plbm_ms == 20  # the relapse still counts
    assert (relapsed.worst_outage_ms, relapsed.outages) == (10, 2)


def test_a_relapse_that_only_the_repair_ends_is_no_recovery_in_the_window() -> None:
    repair_ns = FAULT_NS + 3 * S
    records = record(flow(), 9 * S, [Dead(FAULT_NS, FAULT_NS + 10 * MS), Dead(FAULT_NS + 2 * S, repair_ns + 5 * MS)])
    edges = [edge(FAULT_NS, repair_ns), edge(repair_ns, 10 * S, EdgeKind.REPAIR)]
    metrics = analyse([flow()], *records.tables, (), edges, (S, FAULT_NS), settings=Settings(validation_s=1.0))
    failure, repair = metrics.flows[0].edges
    assert (failure.recovered, failure.recovered_in_window) == (True, False)
    assert repair.recovered_in_window


def test_a_flow_that_never_comes_back_has_a_lower_bound_and_no_convergence_time() -> None:
    result, metrics = measure(record(flow(), 9 * S, [Dead(FAULT_NS, 100 * S)]) + record(flow(1), 10 * S))
    assert not result.recovered
    assert not result.validated
    assert result.convergence_ms is None
    assert result.convergence_reason == "did not recover within the record"
    assert metrics.flows[0].longest_outages[0].open
    assert result.outage_plbm_ms == result.outage_tbm_ms == 6000  # all that was sent after the fault
    assert metrics.edges[0].full_convergence_ms is None
    assert metrics.edges[0].flows_unrecovered == 1
