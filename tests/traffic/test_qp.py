"""Queue pair logic: what is acknowledged, when a requester gives up, when a responder speaks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hpn.traffic.streams.qp import PSN_MASK, AckPolicy, QpState, Reply, Requester, Responder, RetryPolicy, ack_delay_ns

MS = 10**6
POLICY = RetryPolicy(ib_timeout=8, retry_count=3)  # 1.05 ms a try


def test_patience_is_the_first_try_and_all_retries() -> None:
    assert RetryPolicy(14, 7).timeout_ns == 67_108_864
    assert RetryPolicy(20, 7).patience_ns == 8 * 4_294_967_296


def test_it_errors_exactly_when_all_retries_have_expired_without_progress() -> None:
    requester = Requester(POLICY)
    requester.on_sent(5, 1000)
    assert not requester.on_timer(1000 + POLICY.patience_ns - 1)
    assert (requester.state, requester.timeouts) == (QpState.READY, 3)
    assert requester.on_timer(1000 + POLICY.patience_ns)
    assert (requester.state, requester.timeouts) == (QpState.ERROR, 4)
    assert not requester.on_timer(1000 + 2 * POLICY.patience_ns), "an error is told once"


def test_sending_more_does_not_put_the_error_off() -> None:
    requester = Requester(POLICY)
    for at in range(0, POLICY.patience_ns, MS):
        requester.on_sent(1, at)
    assert requester.on_timer(POLICY.patience_ns)


def test_progress_puts_it_off_and_an_old_acknowledgement_does_not() -> None:
    requester = Requester(POLICY)
    requester.on_sent(10, 0)
    assert requester.on_ack(4, MS)
    assert not requester.on_ack(4, 3 * MS)
    assert not requester.on_ack(2, 3 * MS)
    assert requester.deadline_ns() == MS + POLICY.patience_ns


def test_with_everything_acknowledged_it_waits_for_ever() -> None:
    requester = Requester(POLICY)
    requester.on_sent(3, 0)
    assert requester.on_ack(2, 1)
    assert requester.deadline_ns() is None
    assert not requester.on_timer(10**15)


def test_a_closed_queue_pair_waits_for_nothing_and_a_dead_one_stays_dead() -> None:
    requester = Requester(POLICY)
    requester.on_sent(5, 0)
    requester.close()
    assert (requester.state, requester.deadline_ns()) == (QpState.CLOSED, None)
    assert not requester.on_timer(10**15)
    assert not requester.on_ack(4, 10)
    dead = Requester(POLICY)
    dead.on_sent(1, 0)
    assert dead.on_timer(POLICY.patience_ns)
    dead.close()
    assert dead.state is QpState.ERROR


def test_timeout_exponent_zero_never_expires() -> None:
    requester = Requester(RetryPolicy(0, 7))
    requester.on_sent(1, 0)
    assert not requester.on_timer(10**15)


def test_a_nak_is_counted_and_acknowledges_all_before() -> None:
    requester = Requester(POLICY)
    requester.on_sent(10, 0)
    assert requester.on_nak(7, 5)
    assert (requester.naks, requester.acknowledged) == (1, 7)


class RequesterMachine(RuleBasedStateMachine):
    """Any order of sending, true or false acknowledgements and time, also over the wrap of the PSN."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.requester = Requester(POLICY)
        jump = PSN_MASK - 20  # near the wrap: as if that many had been sent and acknowledged
        self.requester.sent = self.requester.acknowledged = jump
        self.progress_at = 0

    @rule(count=st.integers(1, 50))
    def send(self, count: int) -> None:
        if not self.requester.outstanding:
            self.progress_at = self.now
        self.requester.on_sent(count, self.now)

    @precondition(lambda self: self.requester.outstanding)
    @rule(data=st.data())
    def true_ack(self, data: st.DataObject) -> None:
        seq = data.draw(st.integers(self.requester.acknowledged, self.requester.sent - 1))
        alive = self.requester.state is QpState.READY
        assert self.requester.on_ack(seq & PSN_MASK, self.now) is alive
        if alive:
            self.progress_at = self.now
            assert self.requester.acknowledged == seq + 1

    @rule(psn=st.integers(0, PSN_MASK))
    def any_ack(self, psn: int) -> None:
        before = self.requester.acknowledged
        ahead = (psn + 1 - before) & PSN_MASK
        moved = self.requester.on_ack(psn, self.now)
        assert moved is (0 < ahead <= self.requester.sent - before and self.requester.state is QpState.READY)
        if moved:
            self.progress_at = self.now

    @rule(step=st.integers(0, 6 * MS))
    def wait(self, step: int) -> None:
        self.now += step
        alive = self.requester.state is QpState.READY
        late = self.requester.outstanding > 0 and self.now - self.progress_at >= POLICY.patience_ns
        assert self.requester.on_timer(self.now) is (alive and late)

    @invariant()
    def no_more_is_acknowledged_than_sent(self) -> None:
        assert self.requester.outstanding >= 0


TestRequester = RequesterMachine.TestCase


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3 * MS)), max_size=30))
def test_without_loss_every_packet_is_acknowledged_within_the_delay_and_not_more_often_than_told(
    batches: list[tuple[int, int]],
) -> None:
    policy = AckPolicy(packets=16, delay_ns=2 * MS)
    responder, now, seq, acknowledged = Responder(policy), 0, 0, -1
    for count, step in batches:
        due = now + policy.delay_ns
        now += step
        timed = responder.on_timer(now)
        if now >= due and acknowledged < seq - 1:
            assert timed == Reply(seq - 1)
        if timed:
            acknowledged = timed.psn
        replies = responder.on_data(seq, seq + count - 1, count, now)
        seq += count
        assert len(replies) <= 1
        assert all(reply == Reply(seq - 1) for reply in replies)
        if replies:
            acknowledged = seq - 1
        assert seq - 1 - acknowledged < policy.packets
        assert responder.waiting == seq - 1 - acknowledged
    last = responder.on_timer(now + policy.delay_ns)
    assert last is None or last == Reply(seq - 1)
    assert responder.on_timer(now + 10 * policy.delay_ns) is None


def test_acknowledgements_wait_no_longer_than_matters_to_the_least_patient() -> None:
    assert ack_delay_ns([]) == ack_delay_ns([RetryPolicy(14, 7), RetryPolicy(0, 7)]) == 4 * MS
    assert ack_delay_ns([RetryPolicy(14, 7), POLICY]) == POLICY.patience_ns // 32


def test_a_hole_is_naked_once_and_then_acknowledged_beyond() -> None:
    responder = Responder(AckPolicy(packets=4, delay_ns=MS))
    assert responder.on_data(0, 2, 3, 0) == []
    assert responder.on_data(10, 10, 1, 1) == [Reply(3, nak=True), Reply(10)]
    assert responder.on_data(11, 11, 1, 2) == []
    assert responder.on_data(5, 5, 1, 3) == [], "a late packet is no hole"
    assert responder.on_timer(2 + MS) == Reply(11)


def test_a_hole_inside_a_batch_is_noticed() -> None:
    assert Responder(AckPolicy()).on_data(0, 4, 4, 0) == [Reply(0, nak=True)]


def test_the_psn_wraps_and_the_sequence_number_does_not() -> None:
    responder = Responder(AckPolicy(packets=1))
    responder.on_data(0, PSN_MASK, PSN_MASK + 1, 0)
    assert responder.on_data(PSN_MASK + 1, PSN_MASK + 1, 1, 1) == [Reply(0)]
