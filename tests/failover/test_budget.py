"""The interval of an outage: the truth is in it wherever the sender paused; the packets around say how wide it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpn.failover.analysis.budget import Interval, around, late_by, of_statistic, outage_budget
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import QUICK, EdgeKind, FlowEdgeResult
from hpn.traffic.streams.pacing import Schedule
from hpn.traffic.streams.records import RECEIVED, SENT
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow, record

FAULT_NS, END_NS = 3 * S, 4 * S


def measured(
    hole: tuple[int, int] | None,
    pause: tuple[int, int] | None,
    rate_pps: float = 1000,
    tick_ns: int = MS,
    phase: int = 0,
    *,
    after_stamp: bool = False,
) -> FlowEdgeResult:
    """What is said of a flow that is dropped in ``hole`` and whose sender, by the real schedule, stops in ``pause``.

    Both are [from, to) relative to the fault, which comes ``phase`` ns after a whole number of ticks. ``after_stamp``:
    the sender stops between writing the time into a burst and handing it to the kernel.
    """
    spec = flow(rate_pps=rate_pps)
    schedule, start_ns = Schedule([rate_pps], tick_ns), FAULT_NS - S - phase
    schedule.start(start_ns)
    rows: list[tuple[int, int, int, int]] = []  # count, seq, stamped, really sent
    at_ns = start_ns
    while at_ns < END_NS:
        stops = pause is not None and pause[0] <= at_ns - FAULT_NS < pause[1]
        if pause is not None and stops and not after_stamp:
            at_ns = FAULT_NS + pause[1]
        count = int(schedule.due(at_ns)[0])
        if count:
            really_ns = FAULT_NS + pause[1] if pause is not None and stops else at_ns
            rows.append((count, int(schedule.next_seq[0]), at_ns, really_ns))
            at_ns = max(at_ns, really_ns)
            schedule.advance(np.array([0]), np.array([count]))
        at_ns = start_ns + ((at_ns - start_ns) // tick_ns + 1) * tick_ns
    sent = np.zeros(len(rows), SENT)
    sent["count"], sent["seq"], sent["sent_ns"], really = (np.array(column) for column in zip(*rows, strict=True))
    received = np.zeros(int(sent["count"].sum()), RECEIVED)
    received["seq"] = np.arange(len(received))
    received["sent_ns"] = np.repeat(sent["sent_ns"], sent["count"])
    left_ns = np.repeat(really, sent["count"])
    received["received_ns"] = left_ns + MS // 20
    if hole is not None:
        since = left_ns - FAULT_NS
        received = received[(since < hole[0]) | (since >= hole[1])]
    down = edge(FAULT_NS, END_NS, EdgeKind.FAILURE)
    healthy, tables = (start_ns, start_ns + S // 2), Records(sent, received).tables
    metrics = analyse([spec], *tables, (), [down], healthy, QUICK, record_end_ns=END_NS + S)
    return metrics.flows[0].edges[0]


def milliseconds(low: float, high: float) -> tuple[int, int]:
    return round(low * MS), round(high * MS)


@pytest.mark.parametrize("from_ms", [40.5, 42.5, 45.5, 48.5, 50.5, 52.5, 54.5])
def test_a_pause_across_the_end_of_an_outage_is_in_its_interval(from_ms: float) -> None:
    """55 ms, of which a sender that stops for 15 ms sees as little as 40: no limit in between may pass or fail it."""
    found = measured(milliseconds(0, 55), milliseconds(from_ms, from_ms + 15))
    low, high = found.budget.interval
    assert found.outage_plbm_ms < 55.5
    assert low <= 55 <= high
    assert found.send_gap_ms == pytest.approx(15, abs=1.1)


@pytest.mark.parametrize("from_ms", [-14.5, -10.5, -5.5, -0.5])
def test_a_pause_across_its_start_is_too(from_ms: float) -> None:
    low, high = measured(milliseconds(0, 45), milliseconds(from_ms, from_ms + 15)).budget.interval
    assert low <= 45 <= high


@pytest.mark.parametrize(("hole_ms", "from_ms"), [(55, 40.5), (55, 45.5), (45, -10.5), (45, -5.5)])
def test_a_sender_that_stops_between_stamp_and_system_call_hides_nothing(hole_ms: float, from_ms: float) -> None:
    pause = milliseconds(from_ms, from_ms + 15)
    low, high = measured(milliseconds(0, hole_ms), pause, after_stamp=True).budget.interval
    assert low <= hole_ms <= high


def test_a_sender_that_keeps_its_pace_is_told_to_two_gaps() -> None:
    low, high = measured(milliseconds(0, 55), None).budget.interval
    assert low <= 55 <= high
    assert high - low <= 2.2


def test_an_outage_that_was_not_seen_is_shorter_than_the_largest_gap() -> None:
    assert measured(None, None).budget.interval == pytest.approx((0, 1), abs=0.05)
    assert measured(None, milliseconds(300, 315)).budget.interval == pytest.approx((0, 15), abs=1.1)
    hidden = measured(milliseconds(301, 314), milliseconds(300, 315))
    assert hidden.lost == 0
    assert hidden.budget.high_ms >= 13


def test_a_flow_that_falls_silent_hides_the_rest_of_the_window() -> None:
    assert measured(None, milliseconds(300, 1000)).budget.high_ms >= 700


@settings(max_examples=100, deadline=None)
@example(76.0, 5.0, 4.0, 86.0, 300.0, 3000, 0, True)
@given(
    length_ms=st.floats(0.2, 120),
    offset_ms=st.floats(0, 5),
    pause_ms=st.floats(0, 20),
    pause_from_ms=st.floats(-25, 130),
    rate_pps=st.sampled_from([300.0, 1000.0, 1200.0, 4000.0]),
    tick_us=st.sampled_from([100, 1000, 3000]),
    phase=st.integers(0, MS),
    after_stamp=st.booleans(),
)
def test_the_truth_always_lies_in_the_interval(
    length_ms: float,
    offset_ms: float,
    pause_ms: float,
    pause_from_ms: float,
    rate_pps: float,
    tick_us: int,
    phase: int,
    after_stamp: bool,
) -> None:
    hole = milliseconds(offset_ms, offset_ms + length_ms)
    pause = milliseconds(pause_from_ms, pause_from_ms + pause_ms)
    found = measured(hole, pause, rate_pps, tick_us * 1000, phase, after_stamp=after_stamp)
    low, high = found.budget.interval
    unseen_ms = (
        2 * found.resolution_ms if after_stamp else 0.0
    )  # a stop that short leaves no mark; the noise floor's part
    assert low - unseen_ms <= length_ms <= high
    assert low <= found.outage_plbm_ms <= high
    assert low <= found.outage_tbm_ms <= high
    pace_ms = 1e3 / rate_pps + tick_us / 1e3
    gaps_ms = 2 * max(found.send_gap_ms, pace_ms)
    gaps_ms += min(pause_ms, pace_ms) if after_stamp else 0.0  # stamps do not show it: at one end the gap is longer
    assert high - low <= gaps_ms + found.resolution_ms + abs(found.outage_plbm_ms - found.outage_tbm_ms) + 0.1


def test_an_interval_takes_in_both_methods_and_the_machine_once() -> None:
    found = outage_budget(40.0, 55.0, (40.7, 55.4), machine_ms=1.0, clock_ms=0.5)
    assert found.interval == Interval(38.5, 56.9)
    assert outage_budget(0.0, 0.8, (0.0,), 1.0, 0.0).interval == Interval(0.0, 1.8)


def test_intervals_of_single_figures() -> None:
    assert around(3.0, 5.0) == Interval(0.0, 8.0)
    assert around(-3.0, 5.0) == Interval(-8.0, 2.0)
    assert late_by(20.0, 4.0, 0.5) == Interval(15.5, 20.5)
    assert of_statistic([Interval(1, 4), Interval(2, 3)], max) == Interval(2, 4)
    assert Interval(1, 2).has(Interval(2, 3))
    assert not Interval(1, 2).has(Interval(2.1, 3))


def test_a_pause_across_the_end_of_the_window_hides_all_of_itself() -> None:
    """The next edge comes 10 ms into a pause of 15 ms: an outage that began in this window ends in the next."""
    spec, at_ns = flow(), 3 * S
    sent_ns = np.concatenate([np.arange(2 * S, 4 * S - 10 * MS, MS), np.arange(4 * S + 5 * MS, 5 * S, MS)])
    sent, received = np.zeros(len(sent_ns), SENT), np.zeros(len(sent_ns), RECEIVED)
    sent["count"], sent["seq"], sent["sent_ns"] = 1, np.arange(len(sent_ns)), sent_ns
    received["seq"], received["sent_ns"], received["received_ns"] = sent["seq"], sent_ns, sent_ns + MS // 20
    edges = [edge(at_ns, 4 * S), edge(4 * S, 5 * S, EdgeKind.REPAIR)]
    found = analyse([spec], *Records(sent, received).tables, (), edges, (2 * S, at_ns), QUICK, record_end_ns=5 * S)
    assert found.edges[0].flows_lossy == 0
    assert found.flows[0].edges[0].budget.high_ms >= 15


def test_what_the_next_edge_does_is_hidden_by_none_before_it() -> None:
    """The flow stands still from the second edge on: the first one's window holds a gap of one period, no more."""
    spec, edges = flow(), [edge(3 * S, 4 * S, EdgeKind.REPAIR), edge(4 * S, 5 * S)]
    records = record(spec, 5 * S, [Dead(4 * S, 4 * S + 400 * MS)])
    found = analyse([spec], *records.tables, (), edges, (2 * S, 3 * S), QUICK)
    assert found.flows[0].edges[1].outage_plbm_ms == pytest.approx(400, abs=1)
    assert found.flows[0].edges[0].budget.high_ms == pytest.approx(1, abs=0.1)
