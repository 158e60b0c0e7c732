"""Delay is impairment: what comes too late counts as missing, and the receiver's own silence is timed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, FlowEdgeResult, Settings
from hpn.failover.analysis.settings import QUICK
from hpn.results.judge.verdict import Check, Outcome
from hpn.results.text.impairment import impairment_table
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.expect.evidence import RunFacts
from hpn.scenarios.expect.verdict import judge
from hpn.testbed.files.document import parse
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow, record
from tests.scenarios.measured import drill

FAULT, REPAIR, END = 4 * S, 6 * S, 10 * S


def measure(records: Records, method: Settings = QUICK, repair_ns: int = REPAIR) -> DrillMetrics:
    edges = [edge(FAULT, repair_ns, fault="cut"), edge(repair_ns, END, EdgeKind.REPAIR, fault="cut")]
    return analyse([flow()], *records.tables, [], edges, (S, 3 * S), method)


def failure(metrics: DrillMetrics) -> FlowEdgeResult:
    return metrics.flows[0].edges[0]


def check(metrics: DrillMetrics, expectation: str) -> Check:
    return judge(drill(expectation), metrics, RunFacts(state_differences=())).checks[0]


def delayed(by_ms: int, end_ns: int = REPAIR) -> Records:
    """Every packet sent between failure and repair takes that much longer; none is lost."""
    return record(flow(), 9 * S, stuck=Dead(FAULT, end_ns), stuck_for_ns=by_ms * MS)


def test_150_ms_of_delay_for_2_s_are_2_s_of_impairment_and_no_outage() -> None:
    metrics = measure(delayed(150))
    result, found = failure(metrics), failure(metrics).impairment
    assert (result.outage_plbm_ms, result.outage_tbm_ms, result.lost) == (0, 0, 0)
    on_its_way = 100  # at the repair: those packets, being what it may have hit, are counted there
    assert [each.impairment.packets for each in metrics.flows[0].edges] == [2000 - on_its_way, on_its_way]
    assert found.plbm_ms == pytest.approx(2000)
    assert found.tbm_ms == pytest.approx(2000, abs=1)
    assert found.low_ms < 2000 < found.high_ms < 2003
    assert (found.over, found.doubtful) == (True, 0)


def test_the_receiver_hears_nothing_for_as_long_as_the_delay_grows_by() -> None:
    assert failure(measure(delayed(80))).impairment.receive_gap_ms == pytest.approx(80, abs=0.01)
    assert failure(measure(delayed(80))).impairment.packets == 0, "80 ms are in time"


def test_receive_stamps_decide_and_send_stamps_do_not() -> None:
    records = record(flow(), 9 * S)
    records.received["received_ns"][records.received["sent_ns"] >= FAULT + S] += 7 * MS
    assert failure(measure(records)).impairment.receive_gap_ms == pytest.approx(7, abs=0.01)
    assert failure(measure(records)).outage_tbm_ms == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(2 * MS, 1500 * MS), st.integers(0, 3 * MS))
def test_a_hole_is_the_same_by_every_method_when_nothing_is_late(outage_ns: int, offset_ns: int) -> None:
    start_ns = FAULT + offset_ns
    result = failure(measure(record(flow(), 9 * S, [Dead(start_ns, start_ns + outage_ns)])))
    found = result.impairment
    assert (found.plbm_ms, found.tbm_ms, found.packets) == (result.outage_plbm_ms, result.outage_tbm_ms, result.lost)
    assert found.receive_gap_ms == pytest.approx(result.outage_tbm_ms, abs=1e-6)


def test_a_silence_counts_whole_at_the_edge_that_began_it_and_its_rest_at_the_next() -> None:
    metrics = measure(record(flow(), 9 * S, [Dead(FAULT, REPAIR + 300 * MS)]))
    gaps = [result.impairment.receive_gap_ms for result in metrics.flows[0].edges]
    assert gaps == pytest.approx([2300, 300], abs=1.2)


def test_a_silence_that_the_next_edge_begins_is_none_of_the_one_before() -> None:
    metrics = measure(record(flow(), 9 * S, [Dead(REPAIR, REPAIR + 300 * MS)]))
    gaps = [result.impairment.receive_gap_ms for result in metrics.flows[0].edges]
    assert gaps == pytest.approx([0, 300], abs=1.2)


def test_a_silence_that_the_sender_made_itself_breaks_no_limit() -> None:
    """Nothing was sent for 300 ms: the network may have been silent for none of it."""
    records = record(flow(), 9 * S)
    since = records.sent["sent_ns"].astype(np.int64) - (FAULT + S)
    there = (since <= 0) | (since >= 300 * MS)
    sent, received = records.sent[there].copy(), records.received[there].copy()
    sent["seq"] = received["seq"] = np.arange(len(sent))
    judged = check(measure(Records(sent, received)), "worst_receive_gap: {below: 100 ms, edge: failure, flows: hit}")
    assert judged.outcome is Outcome.INCONCLUSIVE
    assert judged.low == pytest.approx(0, abs=5)
    assert judged.measured == pytest.approx(300, abs=2)
    assert "its sender paused for 29" in judged.evidence


def test_what_a_sender_held_back_itself_is_in_doubt() -> None:
    """It stamped a burst of ten and stood still for 300 ms before they left."""
    records = record(flow(), 9 * S, burst=10)
    stalled = (records.sent["sent_ns"] > FAULT + S) & (records.sent["sent_ns"] < FAULT + S + 300 * MS)
    first = int(np.flatnonzero(stalled)[0])
    sent = np.delete(records.sent, np.flatnonzero(stalled)[1:])
    sent["seq"] = 10 * np.arange(len(sent))
    held_ns = int(sent["sent_ns"][first])
    received = records.received[: 10 * len(sent)].copy()
    received["sent_ns"] = np.repeat(sent["sent_ns"], 10)
    received["received_ns"] = received["sent_ns"] + MS // 10
    received["received_ns"][received["sent_ns"] == held_ns] += 250 * MS
    metrics = measure(Records(sent, received))
    found = failure(metrics).impairment
    assert (found.packets, found.doubtful) == (10, 10)
    judged = check(metrics, "packets_impaired: {at_most: 0, edge: failure, flows: hit}")
    assert (judged.outcome, judged.low, judged.high) == (Outcome.INCONCLUSIVE, 0, 10)
    assert "10 may have been late at their senders" in judged.evidence


@pytest.mark.parametrize(
    ("expectation", "outcome"),
    [
        ("worst_outage: {below: 50 ms, edge: failure, flows: hit}", Outcome.PASS),
        ("worst_impairment: {below: 50 ms, edge: failure, flows: hit}", Outcome.FAIL),
        ("worst_impairment: {at_least: 1990 ms, edge: failure, flows: hit}", Outcome.PASS),
        ("worst_impairment: {below: 2000 ms, edge: failure, flows: hit}", Outcome.INCONCLUSIVE),
        ("worst_receive_gap: {below: 140 ms, edge: failure, flows: hit}", Outcome.FAIL),
        ("worst_receive_gap: {below: 160 ms, edge: failure, flows: hit}", Outcome.PASS),
        ("packets_lost: {at_most: 0}", Outcome.PASS),
        ("packets_impaired: {at_most: 1999}", Outcome.FAIL),
        ("packets_impaired: {at_most: 1899, edge: failure, flows: hit}", Outcome.FAIL),
        ("packets_impaired: {at_most: 1900, edge: failure, flows: hit}", Outcome.PASS),
    ],
)
def test_expectations_of_delay(expectation: str, outcome: Outcome) -> None:
    assert check(measure(delayed(150)), expectation).outcome is outcome


def test_what_is_in_time_is_the_drill_s_to_say() -> None:
    text = "drill: x\nsummary: x\ntopology: tiny\ndelay_threshold: 200 ms\nexpect: [{packets_impaired: {at_most: 0}}]\n"
    method = drill_from(parse(text, "d.yaml"), Path()).settings
    assert method.forwarding_delay_threshold_ms == 200
    assert failure(measure(delayed(150), method)).impairment.packets == 0


@pytest.mark.parametrize(("limit", "outcome"), [("60 s", Outcome.INCONCLUSIVE), ("4 s", Outcome.FAIL)])
def test_a_delay_that_stays_keeps_no_upper_limit(limit: str, outcome: Outcome) -> None:
    """It is 150 ms of impaired packets when the record ends 150 ms later, and no less for that."""
    metrics = measure(delayed(150, end_ns=20 * S), repair_ns=9 * S)
    judged = check(metrics, f"worst_impairment: {{below: {limit}, edge: failure, flows: hit}}")
    assert (judged.outcome, judged.open_ended) == (outcome, True)
    assert "never in time again" in judged.evidence


def test_the_terminal_has_a_table_of_it_only_where_it_says_more_than_loss() -> None:
    assert impairment_table(measure(record(flow(), 9 * S, [Dead(FAULT, FAULT + 20 * MS)]))) is None
    found = impairment_table(measure(delayed(150)))
    assert found is not None
    assert next(str(cell) for cell in found.columns[3]._cells) == "2000.00"
    assert impairment_table(measure(delayed(80))) is not None, "nothing late, but the receiver heard nothing"
