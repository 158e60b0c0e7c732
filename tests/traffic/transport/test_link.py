"""Both ends over a channel that loses, delays, doubles and reorders: everything arrives once, in order, unchanged."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.ranges import PSN_MASK
from hpn.traffic.transport.requester import Requester
from hpn.traffic.transport.responder import Reply, Responder
from hpn.traffic.transport.timers import RETRY_TIMERS
from hpn.traffic.transport.work import Completion, Recovery, Status, Transport, WorkRequest
from tests.traffic.transport.link import ACKS, FINE, LATENCY_NS, LOST, MTU, PACKET_NS, Fate, Link, Wire

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


@given(st.integers(0, 150), st.integers(1, 40))
def test_go_back_n_sends_again_just_what_had_been_sent_from_the_lost_packet_on(lost: int, most: int) -> None:
    link = LosesOnce({lost}, TRANSPORT, most)
    link.post(200 * MTU)
    link.run()
    link.check_delivered()
    back = next(i for i, run in enumerate(link.runs) if run.again)
    sent = sum(run.count for run in link.runs[:back])
    assert link.again() == Counter(range(lost, sent))
    assert link.requester.counters.packet_seq_err == link.responder.counters.naks == 1
    assert link.requester.counters.local_ack_timeout_err == 0


@given(st.sets(st.integers(0, 190), max_size=25), st.integers(1, 40))
def test_selective_repeat_sends_again_just_what_was_lost(lost: set[int], most: int) -> None:
    link = LosesOnce(lost, replace(TRANSPORT, recovery=Recovery.SELECTIVE_REPEAT), most)
    link.post(100 * MTU, 100 * MTU)
    link.run()
    link.check_delivered()
    assert link.again() == Counter(lost)
    sent, received = link.requester.counters, link.responder.counters
    assert sent.packet_seq_err == received.naks == sent.packets_again == len(lost)
    assert sent.local_ack_timeout_err == received.duplicate_request == 0
    assert {reply.psn - BEFORE_WRAP for reply in link.replied if reply.nak} == lost


class LosesOnce(Link):
    """A channel that loses some packets, by their number in the connection, the first time they are sent."""

    def __init__(self, lost: set[int], transport: Transport, most_packets: int) -> None:
        super().__init__(transport, first_psn=BEFORE_WRAP, most_packets=most_packets)
        self._lost = {(BEFORE_WRAP + number) & PSN_MASK for number in lost}

    def enter(self, what: Wire | Reply, at_ns: int, fate: Fate) -> None:
        if isinstance(what, Wire) and what.psn24 in self._lost:
            self._lost.remove(what.psn24)
            return
        super().enter(what, at_ns, fate)

    def again(self) -> Counter[int]:
        """How often each packet was sent again."""
        again = (run for run in self.runs if run.again)
        return Counter(psn - BEFORE_WRAP for run in again for psn in range(run.psn, run.psn + run.count))


@given(st.lists(st.integers(0, 4), max_size=150))
def test_sprayed_packets_that_come_out_of_order_are_not_sent_again(late: list[int]) -> None:
    transport = replace(TRANSPORT, recovery=Recovery.SELECTIVE_REPEAT, reorder_packets=4)
    link = Link(transport, [(packets * PACKET_NS,) for packets in late], first_psn=BEFORE_WRAP)
    link.post(200 * MTU)
    link.run()
    link.check_delivered()
    assert link.requester.counters.packets_again == link.responder.counters.naks == 0


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


def test_so_is_one_behind_which_nothing_is_sent() -> None:
    link = Link(replace(TRANSPORT, recovery=Recovery.SELECTIVE_REPEAT), [FINE] * 68 + [LOST] * 32)
    link.post(100 * MTU)
    link.run()
    link.check_delivered()
    assert (link.requester.counters.local_ack_timeout_err, link.requester.counters.packets_again) == (1, 32)
    assert link.now_ns < 100 * PACKET_NS + TIMER.wait_ns(0) + 7 * (2 * LATENCY_NS + 16 * PACKET_NS)


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
