"""Both ends over a channel that loses, delays, doubles and reorders: everything arrives once, in order, unchanged."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traffic.rc.link import ACKS, FINE, LATENCY_NS, LOST, MTU, PACKET_NS, Fate, Link
from traffic.qp import QpState
from traffic.rc.ranges import PSN_MASK
from traffic.rc.requester import Requester
from traffic.rc.responder import Responder
from traffic.rc.timers import RETRY_TIMERS
from traffic.rc.work import Completion, Recovery, Status, Transport, WorkRequest

TIMER = RETRY_TIMERS["ib"].make(6)  # 262 us; a round trip is some 30
TRANSPORT = Transport(path_mtu=MTU, timer=TIMER, retry_count=10_000, window_packets=32, ack_every=8)
BEFORE_WRAP = 2**24 - 20

recoveries = st.sampled_from(Recovery)
sizes = st.lists(
    st.one_of(st.sampled_from([1, MTU - 1, MTU, MTU + 1, 2 * MTU, 40 * MTU]), st.integers(1, 12 * MTU)),
    min_size=1,
    max_size=8,
)
fates = st.lists(
    st.one_of(
        st.just(FINE),
        st.just(LOST),
        st.lists(st.sampled_from([0, 500, 3_000, 40_000, 300_000, 900_000]), max_size=3).map(tuple),
    ),
    max_size=120,
)
either = pytest.mark.parametrize("recovery", Recovery)


@given(recoveries, sizes, fates, fates, st.sampled_from([0, 1, BEFORE_WRAP]), st.integers(1, 40))
def test_whatever_the_channel_does_every_message_arrives_once_in_order_and_unchanged(
    recovery: Recovery, sizes: list[int], data: list[Fate], replies: list[Fate], first_psn: int, most: int
) -> None:
    link = Link(replace(TRANSPORT, recovery=recovery), data, replies, first_psn, most)
    link.post(*sizes)
    link.run()
    link.check_delivered()


@given(recoveries, st.floats(0, 0.4), st.floats(0, 0.4), st.integers(0, 2**32))
@settings(max_examples=30)
def test_a_lasting_loss_costs_time_and_nothing_else(
    recovery: Recovery, loss: float, reply_loss: float, seed: int
) -> None:
    link = Link(replace(TRANSPORT, recovery=recovery), losing(loss, seed), losing(reply_loss, seed + 1), BEFORE_WRAP)
    link.post(100 * MTU, 1, 200 * MTU - 1)
    link.run()
    link.check_delivered()


def losing(share: float, seed: int) -> Iterator[Fate]:
    rng = random.Random(seed)
    while True:
        yield LOST if rng.random() < share else FINE


@given(recoveries, sizes, st.integers(1, 40))
def test_without_loss_nothing_is_sent_twice_or_naked(recovery: Recovery, sizes: list[int], most: int) -> None:
    link = Link(replace(TRANSPORT, recovery=recovery), first_psn=BEFORE_WRAP, most_packets=most)
    link.post(*sizes)
    link.run()
    link.check_delivered()
    sent, received = link.requester.counters, link.responder.counters
    assert sent.packets == received.packets == sum(TRANSPORT.packets(size) for size in sizes)
    assert (sent.packets_again, sent.local_ack_timeout_err, sent.packet_seq_err) == (0, 0, 0)
    assert (received.out_of_sequence, received.duplicate_request, received.naks) == (0, 0, 0)


@given(st.integers(0, 150))
def test_go_back_n_sends_again_just_what_had_been_sent_from_the_lost_packet_on(lost: int) -> None:
    link = Link(TRANSPORT, [FINE] * lost + [LOST], first_psn=BEFORE_WRAP, most_packets=4)
    link.post(200 * MTU)
    link.run()
    link.check_delivered()
    again = [run for run in link.runs if run.again]
    psns = [psn - BEFORE_WRAP for run in again for psn in range(run.psn, run.psn + run.count)]
    # From its end on a packet takes LATENCY_NS, so does the NAK of the next one; what began to be taken before is out.
    back_ns = (lost + 2) * PACKET_NS + 2 * LATENCY_NS
    out = min(-(-(back_ns + 1) // (4 * PACKET_NS)) * 4, lost + TRANSPORT.window_packets)
    assert psns[0] == lost
    assert psns == list(range(lost, lost + len(psns)))
    assert len(psns) <= out - lost
    assert link.requester.counters.packet_seq_err == link.responder.counters.naks == 1
    assert link.requester.counters.local_ack_timeout_err == 0


@given(st.sets(st.integers(0, 150), max_size=30))
def test_selective_repeat_sends_again_just_what_was_lost(lost: set[int]) -> None:
    data = [LOST if number in lost else FINE for number in range(151)]
    link = Link(replace(TRANSPORT, recovery=Recovery.SELECTIVE_REPEAT), data, first_psn=BEFORE_WRAP, most_packets=1)
    link.post(100 * MTU, 100 * MTU)
    link.run()
    link.check_delivered()
    again = Counter(psn for run in link.runs if run.again for psn in range(run.psn, run.psn + run.count))
    naks = [reply.psn for reply in link.replied if reply.nak]
    assert len(naks) == len(set(naks)), "one NAK for each missing packet"
    assert len(link.memory) == 200
    assert link.requester.counters.packets_again == sum(again.values())
    assert link.requester.counters.packets - 200 == link.requester.counters.packets_again
    if link.requester.counters.local_ack_timeout_err == 0:
        assert sum(again.values()) == link.responder.counters.naks
        assert link.responder.counters.duplicate_request == 0


@either
def test_a_lost_retransmission_is_found_by_the_retry_timer(recovery: Recovery) -> None:
    data = [FINE] * 4 + [LOST] + [FINE] * 27 + [LOST]
    link = Link(replace(TRANSPORT, recovery=recovery), data, most_packets=32)
    link.post(32 * MTU)
    link.run()
    link.check_delivered()
    assert link.requester.counters.local_ack_timeout_err == 1
    if recovery is Recovery.SELECTIVE_REPEAT:
        assert [(run.first, run.count) for run in link.runs if run.again] == [(4, 1), (4, 1)]


@either
@pytest.mark.parametrize("kind", RETRY_TIMERS)
@pytest.mark.parametrize("delivered", [0, 50])
def test_a_dead_path_kills_the_queue_pair_exactly_when_its_patience_is_over(
    recovery: Recovery, kind: str, delivered: int
) -> None:
    transport = replace(TRANSPORT, recovery=recovery, timer=RETRY_TIMERS[kind].make(12), retry_count=3)
    fates = (FINE if number < delivered else LOST for number in range(10**9))
    link = Link(transport, fates, first_psn=BEFORE_WRAP)
    link.post(40 * MTU, 100 * MTU, 1)
    link.run()
    ends = [(end.request.id, end.status) for end in link.completions]
    exceeded = [Status.SUCCESS] * (delivered > 0) + [Status.RETRY_EXCEEDED] + [Status.FLUSHED] * 2
    assert ends == list(enumerate(exceeded[:3]))
    assert link.requester.state is QpState.ERROR
    assert link.completions[-1].completed_ns == link.progress_ns + transport.patience_ns
    assert link.requester.counters.local_ack_timeout_err == transport.timer.retries(3)


@either
def test_an_outage_of_a_full_window_is_made_good_in_a_few_round_trips_after_one_timeout(recovery: Recovery) -> None:
    data = [FINE] * 10 + [LOST] * 32
    link = Link(replace(TRANSPORT, recovery=recovery), data)
    link.post(100 * MTU)
    link.run()
    link.check_delivered()
    assert link.requester.counters.local_ack_timeout_err == 1
    # The four sent at the second acknowledgement are under way when the first new packet has them NAKed.
    assert link.requester.counters.packets_again - 32 == (4 if recovery is Recovery.SELECTIVE_REPEAT else 0)


@pytest.mark.parametrize("mtu", [1024, 4096])
def test_a_message_of_2_gib_crosses_the_wrap_run_by_run(mtu: int) -> None:
    transport = Transport(path_mtu=mtu, window_packets=2**14)
    requester, responder = Requester(transport, BEFORE_WRAP), Responder(transport, ACKS, BEFORE_WRAP)
    requester.post(WorkRequest(0, 2**31, 0, 7), 0)
    calls = 0
    done: list[Completion] = []
    while not done:
        for run in requester.take(2**13, calls):
            (reply,) = responder.on_run(run.psn & PSN_MASK, run.count, True, calls).replies
            done += requester.on_ack(reply.psn & PSN_MASK, calls)
            calls += 1
    assert calls == 2**31 // mtu // 2**13
    assert responder.expected == BEFORE_WRAP + 2**31 // mtu
    assert done[0].request.size_bytes == responder.counters.packets * mtu
