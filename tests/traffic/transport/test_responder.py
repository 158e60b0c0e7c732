"""The receiving end, step by step: what is kept, what is acknowledged and when, what is NAKed."""

from __future__ import annotations

from dataclasses import replace

from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.ranges import PSN_MASK
from hpn.traffic.transport.responder import Reply, Responder, Taken
from hpn.traffic.transport.work import Recovery, Transport

FIRST = 2**24 - 3
ACKS = AckPolicy(packets=4, delay_ns=1000)
GO_BACK_N = Transport(window_packets=8)
SELECTIVE = Transport(window_packets=8, recovery=Recovery.SELECTIVE_REPEAT)


def responder(transport: Transport = GO_BACK_N) -> Responder:
    return Responder(transport, ACKS, FIRST)


def arrive(made: Responder, number: int, count: int = 1, ack: bool = False, now_ns: int = 0) -> Taken:
    return made.on_run((FIRST + number) & PSN_MASK, count, ack, now_ns)


def replies(taken: Taken) -> list[tuple[str, int]]:
    return [("nak" if reply.nak else "ack", reply.psn - FIRST) for reply in taken.replies]


def test_it_acknowledges_when_asked_after_some_packets_and_after_a_while() -> None:
    made = responder()
    assert replies(arrive(made, 0)) == []
    assert replies(arrive(made, 1, ack=True)) == [("ack", 1)]
    assert replies(arrive(made, 2, 3)) == []
    assert replies(arrive(made, 5)) == [("ack", 5)]
    assert made.deadline_ns() is None
    arrive(made, 6, now_ns=50)
    arrive(made, 7, now_ns=70)
    assert made.deadline_ns() == 1050
    assert made.on_timer(1049) is None
    assert made.on_timer(1050) == Reply(FIRST + 7, nak=False)
    assert made.on_timer(9999) is None


def test_psns_wrap_on_the_wire_and_not_inside() -> None:
    made = responder()
    taken = arrive(made, 0, 6)
    assert (taken.first_psn, taken.expected, taken.accepted) == (FIRST, 2**24 + 3, ((0, 6),))
    assert made.on_run(3, 1, False, 0).expected == 2**24 + 4


def test_go_back_n_keeps_nothing_behind_a_gap_and_naks_it_once() -> None:
    made = responder()
    arrive(made, 0)
    taken = arrive(made, 2, 3, ack=True)
    assert (taken.accepted, taken.expected, replies(taken)) == ((), FIRST + 1, [("nak", 1)])
    assert replies(arrive(made, 5, ack=True)) == []
    assert made.deadline_ns() is None, "the NAK acknowledged packet 0"
    assert arrive(made, 1, 2).accepted == ((0, 2),)
    assert replies(arrive(made, 4)) == [("nak", 3)], "another gap, another NAK"
    assert (made.counters.out_of_sequence, made.counters.naks, made.counters.packets) == (5, 2, 8)


def test_a_gap_at_the_very_first_packet_is_naked() -> None:
    assert replies(arrive(responder(), 1)) == [("nak", 0)]
    assert replies(arrive(responder(SELECTIVE), 2)) == [("nak", 0), ("nak", 1)]


def test_duplicates_are_acknowledged_again_and_not_kept() -> None:
    made = responder()
    arrive(made, 0, 4)
    taken = arrive(made, 1, 2)
    assert (taken.accepted, replies(taken)) == ((), [("ack", 3)])
    taken = arrive(made, 2, 3)
    assert (taken.accepted, taken.expected, replies(taken)) == (((2, 1),), FIRST + 5, [("ack", 4)])
    assert made.counters.duplicate_request == 4
    assert made.counters.out_of_sequence == 0


def test_a_duplicate_from_before_the_first_packet_changes_nothing() -> None:
    made = responder()
    assert replies(arrive(made, -1)) == [("ack", -1)]
    assert made.expected == FIRST


def test_selective_repeat_keeps_what_is_behind_a_gap_and_naks_each_missing_packet_once() -> None:
    made = responder(SELECTIVE)
    arrive(made, 0)
    taken = arrive(made, 2, 2)
    assert (taken.accepted, taken.expected, replies(taken)) == (((0, 2),), FIRST + 1, [("nak", 1)])
    assert replies(arrive(made, 6)) == [("nak", 4), ("nak", 5)]
    assert replies(arrive(made, 7)) == []
    taken = arrive(made, 1)
    assert (taken.accepted, taken.expected, replies(taken)) == (((0, 1),), FIRST + 4, [("ack", 3)])
    taken = arrive(made, 4, 2)
    assert (taken.expected, replies(taken)) == (FIRST + 8, [("ack", 7)])
    assert (made.counters.out_of_sequence, made.counters.duplicate_request, made.counters.naks) == (4, 0, 3)


def test_where_packets_are_sprayed_one_is_missing_when_enough_behind_it_have_arrived() -> None:
    made = responder(replace(SELECTIVE, reorder_packets=2))
    assert replies(arrive(made, 1, 2)) == []
    assert replies(arrive(made, 4)) == [("nak", 0)]
    assert replies(arrive(made, 5)) == []
    assert replies(arrive(made, 6)) == [("nak", 3)]
    assert replies(arrive(made, 3)) == [], "it was late only"
    assert replies(arrive(made, 0)) == [("ack", 6)]
    assert replies(arrive(made, 8, 2)) == []
    assert replies(arrive(made, 7)) == [("ack", 9)]
    assert made.counters.naks == 2


def test_what_was_kept_already_is_a_duplicate_and_the_rest_of_its_run_is_not() -> None:
    made = responder(SELECTIVE)
    arrive(made, 2)
    arrive(made, 4)
    assert arrive(made, 1, 5).accepted == ((0, 1), (2, 1), (4, 1))
    assert (made.counters.duplicate_request, made.counters.out_of_sequence) == (2, 5)
    taken = arrive(made, 0, 3)
    assert (taken.accepted, taken.expected) == (((0, 1),), FIRST + 6)
    assert made.counters.duplicate_request == 4


def test_beyond_the_window_nothing_is_kept_or_naked() -> None:
    made = responder(SELECTIVE)
    taken = arrive(made, 6, 4)
    assert taken.accepted == ((0, 2),)
    assert len(taken.replies) == 6
    for far in (8, 12):
        assert arrive(made, far, 3) == Taken((), FIRST + far, FIRST, ())
    assert made.counters.out_of_sequence == 10
    assert arrive(made, 0, 6).expected == FIRST + 8


def test_a_late_packet_is_acknowledged_when_it_closes_the_gap_whatever_is_behind() -> None:
    made = responder(SELECTIVE)
    arrive(made, 1)
    assert replies(arrive(made, 0)) == [("ack", 1)]
