"""Flows that send by plan: a planned pause is no outage, a transfer is whole or is not, every packet is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.metrics.trace import build_traces
from hpn.failover.analysis.model import QUICK, DrillMetrics, EdgeKind
from hpn.failover.analysis.transfers import Fate, Transfer
from hpn.testbed.events import Event, EventKind
from hpn.traffic.flows.flow import FlowSpec, Transfers
from hpn.traffic.streams.pacing import Schedule
from hpn.traffic.streams.records import RECEIVED, SENT
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow

FAULT_NS, REPAIR_NS, END_NS = 3 * S, 5 * S, 7 * S
EVERY_NS, PACKETS, TICK_NS, DELAY_NS = 250 * MS, 20, MS, MS // 10
SPEC = replace(flow(rate_pps=1000), transfers=Transfers(PACKETS, EVERY_NS))  # 20 ms of sending, 230 ms of pause
START_NS = FAULT_NS - 2 * S  # a transfer begins with the fault


def sent_by(
    spec: FlowSpec = SPEC, stops: Sequence[Dead] = (), end_ns: int = END_NS, plan: Transfers | None = SPEC.transfers
) -> np.typing.NDArray[np.void]:
    """The bursts of a sender by the real schedule, which stands still in ``stops``."""
    schedule = Schedule([spec.rate_pps], TICK_NS, [plan])
    schedule.start(START_NS)
    rows: list[tuple[int, int, int, int]] = []
    for at_ns in range(START_NS, end_ns, TICK_NS):
        if any(stop.start_ns <= at_ns < stop.end_ns for stop in stops):
            continue
        count = int(schedule.due(at_ns)[0])
        if count:
            rows.append((spec.id, count, int(schedule.next_seq[0]), at_ns))
            schedule.advance(np.array([0]), np.array([count]))
    sent = np.zeros(len(rows), SENT)
    sent["flow"], sent["count"], sent["seq"], sent["sent_ns"] = (np.array(column) for column in zip(*rows, strict=True))
    return sent


def records(
    dead: Sequence[Dead] = (), slow: Dead | None = None, sent: np.typing.NDArray[np.void] | None = None
) -> Records:
    """What arrives of it: nothing of ``dead``; in ``slow`` 30 ms later."""
    sent = sent_by() if sent is None else sent
    packet_ns = np.repeat(sent["sent_ns"], sent["count"])
    received = np.zeros(len(packet_ns), RECEIVED)
    received["flow"] = sent["flow"][0]
    received["seq"], received["sent_ns"] = np.arange(len(packet_ns)), packet_ns
    received["received_ns"] = packet_ns + DELAY_NS
    if slow is not None:
        received["received_ns"][(packet_ns >= slow.start_ns) & (packet_ns < slow.end_ns)] += 30 * MS
    alive = np.ones(len(packet_ns), bool)
    for gap in dead:
        alive &= (packet_ns < gap.start_ns) | (packet_ns >= gap.end_ns)
    return Records(sent, received[alive])


def measure(
    found: Records, events: Sequence[Event] = (), fault_ns: int = FAULT_NS, spec: FlowSpec = SPEC
) -> DrillMetrics:
    edges = [edge(fault_ns, REPAIR_NS), edge(REPAIR_NS, END_NS, EdgeKind.REPAIR)]
    return analyse([spec], *found.tables, events, edges, (START_NS, fault_ns), QUICK, None, END_NS)


def transfers(metrics: DrillMetrics) -> tuple[Transfer, ...]:
    assert metrics.transfers is not None
    return metrics.transfers.transfers


@pytest.mark.parametrize("fault_ms", [0, 5, 19, 20, 21, 100, 249])
def test_a_planned_pause_is_no_outage_no_pause_of_the_sender_and_no_lost_goodput(fault_ms: int) -> None:
    metrics = measure(records(), fault_ns=FAULT_NS + fault_ms * MS)
    assert metrics.inconclusive == ()
    assert metrics.noise.noise_floor_ms <= 1
    assert metrics.noise.send_gap_max_ms <= 2
    assert metrics.flows[0].largest_send_gap_ms <= 2
    assert metrics.flows[0].sent_rate_pps == pytest.approx(1000, rel=0.01)
    for result in metrics.flows[0].edges:
        assert (result.lost, result.outages, result.outage_plbm_ms) == (0, 0, 0)
        assert result.budget.high_ms <= 2.1
        assert result.send_gap_ms <= 2
        assert result.impairment.receive_gap_ms <= 1.1
        assert result.goodput.before_bps == pytest.approx(SPEC.goodput_bps, rel=0.02)
        assert result.goodput.during_bps == pytest.approx(SPEC.goodput_bps, rel=0.02)


@settings(max_examples=150, deadline=None)
@given(
    begins_ms=st.floats(0, 600),
    lasts_ms=st.floats(0.5, 1200),
    stops_ms=st.floats(-10, 1300),
    stops_for_ms=st.floats(0, 9),
)
def test_an_outage_is_the_planned_sending_it_took_whatever_pauses_lie_in_it(
    begins_ms: float, lasts_ms: float, stops_ms: float, stops_for_ms: float
) -> None:
    begins_ns = FAULT_NS + int(begins_ms * MS)
    dead = Dead(begins_ns, begins_ns + int(lasts_ms * MS))
    stops_ns = FAULT_NS + int(stops_ms * MS)
    stop = Dead(stops_ns, stops_ns + int(stops_for_ms * MS))
    found = records([dead], sent=sent_by(stops=[stop]))
    trace = next(iter(build_traces([SPEC], *found.tables, QUICK)))
    truth_ms = (trace.clock_at(dead.end_ns) - trace.clock_at(dead.start_ns)) / 1e6
    result = measure(found).flows[0].edges[0]
    low, high = result.budget.interval
    assert low <= truth_ms <= high
    assert low <= result.outage_plbm_ms <= high
    assert not result.methods_disagree
    if stops_for_ms < 1:
        assert abs(result.outage_plbm_ms - truth_ms) <= 2.1


def test_goodput_is_judged_over_the_time_in_which_was_to_be_sent() -> None:
    result = measure(records([Dead(FAULT_NS, FAULT_NS + S)])).flows[0].edges[0]  # 4 of 8 transfers
    assert result.goodput.during_bps == pytest.approx(SPEC.goodput_bps / 2, rel=0.02)
    assert result.goodput.after_bps == pytest.approx(SPEC.goodput_bps, rel=0.02)
    assert result.outage_plbm_ms == 4 * 20


def test_every_packet_is_of_one_transfer_and_the_sums_are_those_of_the_flow() -> None:
    metrics = measure(records([Dead(FAULT_NS + 10 * MS, FAULT_NS + 260 * MS)]))
    found, whole = transfers(metrics), metrics.flows[0]
    assert [each.number for each in found] == list(range(24))
    assert {each.sent for each in found} == {each.packets for each in found} == {PACKETS}
    assert sum(each.sent for each in found) == whole.sent
    assert sum(each.received for each in found) == whole.received
    assert sum(each.lost for each in found) == whole.lost == 20
    assert [each.number for each in found if each.fate is Fate.INCOMPLETE] == [8, 9]
    assert [each.received for each in found if each.lost] == [10, 10]
    assert [each.edge for each in found] == [*[None] * 8, *[0] * 8, *[1] * 8]
    assert all((each.ms is None) == (each.fate is not Fate.COMPLETE) for each in found)


def test_a_transfer_takes_as_long_as_its_last_packet_and_longer_by_what_the_network_adds() -> None:
    slow = Dead(FAULT_NS + 10 * MS, FAULT_NS + 30 * MS)
    found = transfers(measure(records(slow=slow)))
    times = [each.ms for each in found if each.ms is not None]
    assert times[0] == pytest.approx(19.1)
    assert times[8] == pytest.approx(49.1)
    assert [round(ms, 1) for ms in times] == [19.1] * 8 + [49.1] + [19.1] * 15
    assert all(
        each.low_ms is not None and each.high_ms is not None and each.low_ms <= each.ms <= each.high_ms
        for each in found
        if each.ms is not None
    )
    assert found[8].high_ms == pytest.approx(49.1 + QUICK.clock_ms)


def test_what_the_sender_itself_held_up_is_in_the_interval_and_is_said_when_it_is_much() -> None:
    short = transfers(measure(records(sent=sent_by(stops=[Dead(FAULT_NS + 12 * MS, FAULT_NS + 28 * MS)]))))[8]
    assert short.ms is not None
    assert short.low_ms is not None
    assert short.ms >= 24
    assert short.low_ms <= 19.2
    stuck = measure(records(sent=sent_by(stops=[Dead(FAULT_NS + 10 * MS, FAULT_NS + 60 * MS)])))
    assert any("1 transfers were held up by their senders for longer than 20 ms" in line for line in stuck.inconclusive)


def test_a_sender_that_cuts_transfers_short_is_found_out() -> None:
    """The records of one that sends 19 packets and pauses, where 20 were planned."""
    assert measure(records(sent=sent_by(plan=Transfers(PACKETS, EVERY_NS)))).inconclusive == ()
    cut = measure(records(sent=sent_by(plan=Transfers(PACKETS - 1, EVERY_NS))))
    assert any("transfers were held up by their senders" in line for line in cut.inconclusive)


def test_a_transfer_ends_incomplete_with_its_queue_pair_and_unfinished_with_the_traffic() -> None:
    death = Event(FAULT_NS + 10 * MS, EventKind.QP, "host", SPEC.name, "error", {"flow": SPEC.id})
    died = transfers(measure(records(sent=sent_by(end_ns=FAULT_NS + 10 * MS)), [death]))
    assert [each.fate for each in died[-2:]] == [Fate.COMPLETE, Fate.INCOMPLETE]
    assert (died[-1].sent, died[-1].lost) == (10, 0)
    ended = transfers(measure(records(sent=sent_by(end_ns=END_NS - 240 * MS))))
    assert [each.fate for each in ended[-2:]] == [Fate.COMPLETE, Fate.UNFINISHED]


def test_a_recovery_is_told_up_to_a_pause_late_and_its_interval_says_so() -> None:
    metrics = measure(records([Dead(FAULT_NS + 10 * MS, FAULT_NS + 100 * MS)]))
    recover = metrics.edges[0].phases.recover
    assert recover.ms == pytest.approx(250.1)  # it was over 150 ms before
    assert recover.late_ms == 230


def test_an_even_stream_has_no_transfers_and_its_clock_is_the_clock() -> None:
    even = replace(SPEC, transfers=None)
    found = records(sent=sent_by(even, plan=None))
    trace = next(iter(build_traces([even], *found.tables, QUICK)))
    assert trace.clock(trace.sent_ns) is trace.sent_ns
    assert measure(found, spec=even).transfers is None
