"""The send schedule: absolute, even, and honest about what it gave up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.flows.flow import Transfers
from hpn.traffic.streams.pacing import CATCH_UP_NS, Schedule

S = 10**9
MS = 10**6


def _run(schedule: Schedule, times: list[int]) -> None:
    for at in times:
        due = schedule.due(at)
        flows = np.flatnonzero(due)
        schedule.advance(flows, due[flows])


@given(st.floats(1, 100_000), st.integers(0, 2**50), st.lists(st.integers(1, 9 * MS), min_size=1, max_size=50))
def test_a_sender_that_is_never_very_late_keeps_its_rate_to_the_packet(
    rate: float, start: int, steps: list[int]
) -> None:
    schedule = Schedule([rate])
    schedule.start(start)
    _run(schedule, np.cumsum([start, *steps]).tolist())
    assert schedule.slips[0] == 0
    assert abs(schedule.next_seq[0] - sum(steps) / S * rate) <= 1.001


@given(st.floats(1000, 100_000), st.integers(CATCH_UP_NS, 10 * S))
def test_what_a_stall_costs_beyond_the_limit_is_given_up_and_counted(rate: float, stall: int) -> None:
    schedule = Schedule([rate])
    schedule.start(0)
    _run(schedule, [stall])
    assert schedule.next_seq[0] <= CATCH_UP_NS / S * rate + 2
    assert abs(schedule.next_seq[0] + schedule.slips[0] - stall / S * rate) <= 2
    _run(schedule, [stall + k * MS for k in range(1, 1001)])
    assert abs(schedule.next_seq[0] + schedule.slips[0] - (stall + S) / S * rate) <= 2


def test_long_ticks_cost_no_rate() -> None:
    """20 ms late is what a tick of 20 ms means; 6 ms more is the machine's, and caught up with."""
    schedule = Schedule([60.0, 1000.0], tick_ns=20 * MS)
    schedule.start(0)
    _run(schedule, [k * 20 * MS + (k % 3) * 3 * MS for k in range(1, 501)])
    assert not schedule.slips.any()


def test_nothing_is_due_before_the_start_and_after_the_stop() -> None:
    schedule = Schedule([1000.0, 1000.0])
    assert not schedule.due(5 * S).any()
    schedule.start(10 * S)
    assert not schedule.due(10 * S - 1).any()
    schedule.stop(0)
    assert schedule.due(10 * S + 5 * MS).tolist()[0] == 0
    assert schedule.due(10 * S + 5 * MS).tolist()[1] > 0
    schedule.stop()
    assert not schedule.running
    assert not schedule.due(11 * S).any()


def test_a_flow_that_begins_late_has_nothing_to_catch_up_with() -> None:
    schedule = Schedule([1000.0, 1000.0])
    schedule.start(10 * S, [0])
    _run(schedule, [10 * S + k * MS for k in range(1, 2001)])
    assert (schedule.next_seq[1], schedule.slips[1]) == (0, 0)
    schedule.start(12 * S, [1])
    schedule.stop(0)
    _run(schedule, [12 * S + k * MS for k in range(1, 1001)])
    assert abs(schedule.next_seq[0] - 2000) <= 1
    assert abs(schedule.next_seq[1] - 1000) <= 1
    assert not schedule.slips.any()


def test_flows_of_one_rate_are_spread_over_the_period() -> None:
    schedule = Schedule([10.0] * 20)
    schedule.start(0)
    first = [next(t for t in range(101) if schedule.due(t * MS)[flow]) for flow in range(20)]
    busiest = max(sum(1 for t in first if a <= t < a + 25) for a in range(80))
    assert busiest <= 7, "a quarter of the period holds about a quarter of the flows"


def test_a_slow_flow_does_not_slip_by_waiting_for_its_turn() -> None:
    schedule = Schedule([2.0])
    schedule.start(0)
    _run(schedule, list(range(0, 10 * S, 7 * MS)))
    assert (schedule.next_seq[0], schedule.slips[0]) == (20, 0)


@given(
    packets=st.integers(1, 200),
    rate=st.floats(500, 50_000),
    pause=st.integers(25 * MS, S),
    tick=st.sampled_from([MS // 10, MS, 3 * MS]),
    start=st.integers(0, 2**50),
)
def test_every_transfer_is_sent_whole_when_it_is_due_and_nothing_in_the_pause(
    packets: int, rate: float, pause: int, tick: int, start: int
) -> None:
    sending = packets * 1e9 / rate
    every = round(sending) + pause
    schedule = Schedule([rate, rate], tick, [Transfers(packets, every), None])
    schedule.start(start)
    for number in range(4):
        begins = start + number * every
        times = range(begins, begins + round(sending) + tick + 2, tick)
        before = int(schedule.next_seq[0])
        assert before == number * packets
        _run(schedule, list(times))
        assert schedule.next_seq[0] == before + packets
        _run(schedule, [begins + every - MS])
        assert schedule.next_seq[0] == before + packets
    assert schedule.slips[0] == 0


def test_an_even_stream_is_scheduled_to_the_same_bit_whether_transfers_are_spoken_of_or_not() -> None:
    rates = [333.3, 1000.0, 2857.14]
    one, other = Schedule(rates, MS), Schedule(rates, MS, [None, None, None])
    one.start(7 * S)
    other.start(7 * S)
    for at in range(7 * S, 8 * S, 1_234_567):
        due = one.due(at)
        assert due.tolist() == other.due(at).tolist()
        one.advance(np.flatnonzero(due), due[np.flatnonzero(due)])
        other.advance(np.flatnonzero(due), due[np.flatnonzero(due)])


def test_a_stall_moves_the_rest_of_a_transfer_and_all_after_it_and_gives_no_packet_up_unsent() -> None:
    schedule = Schedule([1000.0], MS, [Transfers(50, 200 * MS)])
    schedule.start(0)
    _run(schedule, [k * MS for k in range(20)])
    _run(schedule, [60 * MS + k * MS for k in range(100)])
    assert schedule.next_seq[0] == 50
    assert schedule.slips[0] > 0
    _run(schedule, [200 * MS + k * MS for k in range(150)])
    assert schedule.next_seq[0] == 100
