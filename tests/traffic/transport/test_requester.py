"""The sending end, step by step: runs, the window, acknowledgements, NAKs, the retry timer and the end."""

from __future__ import annotations

import pytest

from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.ranges import PSN_MASK
from hpn.traffic.transport.requester import Requester, Retry, Run
from hpn.traffic.transport.timers import RETRY_TIMERS
from hpn.traffic.transport.work import Completion, Recovery, Status, Transport, WorkRequest

MTU = 1024
MS = 10**6
BEFORE_WRAP = 2**24 - 3
ONE_MS = RETRY_TIMERS["ib"].make(8)  # 1.05 ms
TRANSPORT = Transport(path_mtu=MTU, timer=ONE_MS, retry_count=3, window_packets=8)
SELECTIVE = Transport(path_mtu=MTU, timer=ONE_MS, retry_count=3, window_packets=8, recovery=Recovery.SELECTIVE_REPEAT)
WAIT = ONE_MS.wait_ns(0)


def requester(*sizes: int, transport: Transport = TRANSPORT, first_psn: int = BEFORE_WRAP) -> Requester:
    made = Requester(transport, first_psn)
    for id_, size in enumerate(sizes):
        made.post(WorkRequest(id_, size, id_ << 32, id_), now_ns=id_)
    return made


def taken(made: Requester, most: int = 1000, now_ns: int = 0) -> list[tuple[int, int, int, int, bool]]:
    """Runs as (message, first, count, PSN from the connection's first, again)."""
    runs = made.take(most, now_ns)
    return [(run.request.id, run.first, run.count, run.psn - BEFORE_WRAP, run.again) for run in runs]


def wire(number: int) -> int:
    """The ``number``-th PSN of the connection as the wire shows it."""
    return (BEFORE_WRAP + number) & PSN_MASK


@pytest.mark.parametrize(
    ("size", "packets"), [(1, 1), (MTU - 1, 1), (MTU, 1), (MTU + 1, 2), (2**31, 2**21)], ids=lambda value: str(value)
)
def test_a_message_of_any_size_is_sent_whole(size: int, packets: int) -> None:
    wide = Transport(path_mtu=MTU, window_packets=2**22)
    made = requester(size, transport=wide)
    assert taken(made, most=2**30) == [(0, 0, packets, 0, False)]
    (completion,) = made.on_ack(wire(packets - 1), MS)
    assert (completion.status, completion.request.size_bytes) == (Status.SUCCESS, size)
    assert made.outstanding_bytes == 0


def test_runs_end_where_messages_the_window_or_the_call_do() -> None:
    made = requester(3 * MTU, 1, 9 * MTU)
    assert taken(made, most=2) == [(0, 0, 2, 0, False)]
    assert taken(made) == [(0, 2, 1, 2, False), (1, 0, 1, 3, False), (2, 0, 4, 4, False)]
    assert not made.sendable
    assert taken(made) == []
    made.on_ack(wire(0), 1)
    assert made.sendable
    assert taken(made) == [(2, 4, 1, 8, False)]


def test_the_last_packet_that_fits_the_window_asks_for_an_acknowledgement() -> None:
    made = requester(20 * MTU)
    assert [run.ack_last for run in made.take(7, 0)] == [False]
    assert [run.ack_last for run in made.take(7, 0)] == [True]


def test_psns_inside_never_wrap_and_those_of_the_wire_do() -> None:
    made = requester(5 * MTU)
    (run,) = made.take(10, 0)
    assert run == Run(WorkRequest(0, 5 * MTU, 0, 0), 0, 5, BEFORE_WRAP, again=False)
    assert made.on_ack(0, 1) == []
    assert made.progress() == 2**24 + 1
    assert made.on_ack(1, 1)[0].status is Status.SUCCESS


def test_completions_come_in_order_each_once_with_its_times() -> None:
    made = requester(MTU, 2 * MTU, MTU)
    made.take(10, 5)
    assert made.outstanding_bytes == 4 * MTU
    assert [done.request.id for done in made.on_ack(wire(1), 7)] == [0]
    last = made.on_ack(wire(3), 9)
    assert [(done.request.id, done.posted_ns, done.completed_ns) for done in last] == [(1, 1, 9), (2, 2, 9)]
    assert made.on_ack(wire(3), 10) == []
    assert made.outstanding_bytes == 0


def test_an_acknowledgement_of_what_was_never_sent_is_nothing() -> None:
    made = requester(9 * MTU)
    made.take(2, 0)
    assert made.on_ack(wire(2), 1) == []
    assert made.progress() == BEFORE_WRAP


def test_a_nak_goes_back_acknowledges_what_is_before_it_and_is_acted_upon_once() -> None:
    made = requester(2 * MTU, 9 * MTU)
    made.take(6, 0)
    assert [done.request.id for done in made.on_nak(wire(3), 1)] == [0]
    assert taken(made, most=2) == [(1, 1, 2, 3, True)]
    made.on_nak(wire(3), 2)
    assert taken(made) == [(1, 3, 1, 5, True), (1, 4, 5, 6, False)]
    assert made.counters.packet_seq_err == 2
    assert made.retries == [Retry(1, 0), Retry(2, 0)]
    assert (made.counters.packets, made.counters.packets_again) == (14, 3)


def test_with_selective_repeat_a_nak_asks_for_its_packet_alone_and_acknowledges_nothing() -> None:
    made = requester(2 * MTU, 9 * MTU, transport=SELECTIVE)
    made.take(7, 0)
    for number in (3, 5, 3):
        assert made.on_nak(wire(number), 1) == []
    assert taken(made) == [(1, 1, 1, 3, True), (1, 3, 1, 5, True), (1, 5, 1, 7, False)]
    made.on_nak(wire(3), 1)
    assert taken(made) == []


def test_what_was_acknowledged_meanwhile_is_not_sent_again() -> None:
    made = requester(9 * MTU)
    made.take(6, 0)
    made.on_timer(WAIT)
    assert made.retries == [Retry(WAIT, 1)]
    made.on_ack(wire(3), WAIT + 1)
    assert taken(made, most=3) == [(0, 4, 2, 4, True), (0, 6, 1, 6, False)]


@pytest.mark.parametrize("transport", [TRANSPORT, SELECTIVE], ids=["go-back-n", "selective-repeat"])
def test_it_errors_exactly_when_its_patience_is_over(transport: Transport) -> None:
    made = requester(MTU, MTU, 9 * MTU, transport=transport)
    made.take(100, 0)
    ends: list[Completion] = []
    tried = []
    while (deadline := made.deadline_ns()) is not None:
        assert made.on_timer(deadline - 1) == []
        ends += made.on_timer(deadline)
        tried.append(deadline)
        made.take(100, deadline)
    assert tried == [WAIT, 2 * WAIT, 3 * WAIT, transport.patience_ns]
    assert [(end.request.id, end.status) for end in ends] == [
        (0, Status.RETRY_EXCEEDED),
        (1, Status.FLUSHED),
        (2, Status.FLUSHED),
    ]
    assert (made.state, made.sendable, made.outstanding_bytes) == (QpState.ERROR, False, 0)
    counters = made.counters
    assert (counters.local_ack_timeout_err, counters.req_transport_retries_exceeded) == (3, 1)
    assert (counters.req_cqe_error, counters.req_cqe_flush_error) == (3, 2)


def test_progress_gives_all_tries_back() -> None:
    made = requester(9 * MTU)
    made.take(4, 0)
    for at in (WAIT, 2 * WAIT, 3 * WAIT):
        made.on_timer(at)
        made.take(4, at)
    made.on_ack(wire(0), 3 * WAIT + 5)
    assert made.deadline_ns() == 4 * WAIT + 5
    assert made.on_timer(4 * WAIT + 5) == []
    assert made.state is QpState.READY


def test_progress_gives_the_first_wait_back() -> None:
    """Of a timer whose waits double: the next loss is found as soon as the first was."""
    timer = RETRY_TIMERS["adaptive"].make(14)
    made = requester(2 * MTU, transport=Transport(path_mtu=MTU, timer=timer, window_packets=8))
    taken(made)
    now = 0
    for tries in range(2):
        assert made.deadline_ns() == now + timer.wait_ns(tries)
        now += timer.wait_ns(tries)
        made.on_timer(now)
        taken(made, now_ns=now)
    assert made.deadline_ns() == now + timer.wait_ns(2)
    made.on_ack(wire(0), now + MS)
    assert made.deadline_ns() == now + MS + timer.wait_ns(0)


def test_nothing_else_does_and_sending_more_does_not_put_the_timer_off() -> None:
    made = requester(9 * MTU)
    made.take(2, 0)
    made.take(2, MS // 2)
    made.on_nak(wire(0), MS // 2)
    made.on_timer(WAIT)
    made.on_ack(wire(-1), WAIT)
    assert made.deadline_ns() is None, "the oldest is to be sent again, and waits for its turn"
    made.take(1, WAIT + 7)
    assert made.deadline_ns() == 2 * WAIT + 7


def test_with_nothing_under_way_it_waits_for_nothing() -> None:
    made = requester(MTU)
    assert made.deadline_ns() is None
    made.take(1, 0)
    made.on_ack(wire(0), 1)
    assert made.deadline_ns() is None
    assert made.on_timer(10**15) == []


def test_after_an_outage_selective_repeat_finds_what_was_lost_in_a_few_round_trips() -> None:
    made = requester(9 * MTU, transport=SELECTIVE)
    made.take(8, 0)
    made.on_timer(WAIT)
    assert taken(made) == [(0, 0, 1, 0, True)]
    made.on_ack(wire(0), WAIT + 1)
    assert taken(made) == [(0, 1, 2, 1, True), (0, 8, 1, 8, False)]
    made.on_ack(wire(1), WAIT + 2)
    assert taken(made) == [], "the other packet of the two is on its way"
    made.on_ack(wire(2), WAIT + 3)
    assert taken(made) == [(0, 3, 4, 3, True)]
    made.on_ack(wire(7), WAIT + 4)
    assert taken(made) == []


def test_after_a_timeout_what_the_receiver_had_is_not_sent_again() -> None:
    made = requester(9 * MTU, transport=SELECTIVE)
    made.take(8, 0)
    made.on_timer(WAIT)
    made.take(8, WAIT)
    made.on_ack(wire(4), WAIT + 1)  # 1 to 4 were there; 5 was not, or it would be acknowledged
    assert taken(made) == [(0, 5, 1, 5, True), (0, 8, 1, 8, False)]


def test_a_request_that_the_other_end_cannot_make_sense_of_is_the_end() -> None:
    made = requester(MTU, MTU)
    made.take(2, 0)
    assert [end.status for end in made.on_refused(Status.INVALID_REQUEST, 1)] == [
        Status.INVALID_REQUEST,
        Status.FLUSHED,
    ]
    assert (made.state, made.counters.req_remote_invalid_request) == (QpState.ERROR, 1)
    assert made.on_refused(Status.INVALID_REQUEST, 2) == []


def test_closed_it_flushes_what_it_has_and_takes_nothing_more() -> None:
    made = requester(MTU, 9 * MTU)
    made.take(2, 0)
    made.on_nak(wire(0), 1)
    assert [end.status for end in made.close(5)] == [Status.FLUSHED] * 2
    assert (made.state, made.outstanding_bytes, made.deadline_ns()) == (QpState.CLOSED, 0, None)
    assert not made.sendable
    assert made.close(6) == []
    assert made.on_ack(wire(0), 7) == made.on_nak(wire(0), 7) == []
    assert made.take(9, 8) == []
    with pytest.raises(ValueError, match="closed"):
        made.post(WorkRequest(9, 1, 0), 9)
