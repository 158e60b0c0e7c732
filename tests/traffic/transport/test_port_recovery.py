"""A failed queue pair comes back when its port does, as NCCL's port recovery has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.transport.port_recovery import Answerer, PortRecovery, Prober, ProberState

MS, S = 1_000_000, 1_000_000_000
POLICY = PortRecovery()
LATENCY_NS = MS


class Ends:
    """Both of them; what they say to each other at ``now_ns`` is lost, or arrives a millisecond later."""

    def __init__(self) -> None:
        self.prober, self.answerer = Prober(POLICY, 0), Answerer(POLICY)
        self.batches_ns: list[int] = []
        self.responder_ns: list[int] = []
        self.requester_ns: int | None = None

    def run(self, heals_ns: int, answers_lost: int = 0) -> None:
        """Until nobody waits any more."""
        while (now_ns := self.prober.deadline_ns()) is not None:
            numbers = self.prober.on_timer(now_ns)
            if numbers:
                self.batches_ns.append(now_ns)
            for number in numbers if now_ns >= heals_ns else ():
                if self.answerer.on_alive(number, now_ns + LATENCY_NS):
                    self.responder_ns.append(now_ns)
                    if len(self.responder_ns) > answers_lost and self.prober.on_acknowledged():
                        self.requester_ns = now_ns
                        self.answerer.on_done()


def test_a_port_that_carries_at_once_is_back_with_the_second_batch() -> None:
    ends = Ends()
    ends.run(heals_ns=0)
    assert ends.batches_ns == [200 * MS, 5200 * MS]
    assert (ends.responder_ns, ends.requester_ns) == ([5200 * MS], 5200 * MS)
    assert ends.prober.state is ProberState.RESTORED


@pytest.mark.parametrize(("heals_ms", "back_ms"), [(100, 5200), (201, 10_200), (5201, 15_200), (10_201, 20_200)])
def test_it_takes_two_batches_after_the_repair(heals_ms: int, back_ms: int) -> None:
    ends = Ends()
    ends.run(heals_ms * MS)
    assert ends.requester_ns == back_ms * MS


@pytest.mark.parametrize("heals_ms", [15_201, 10**9])
def test_five_batches_without_an_answer_are_the_last(heals_ms: int) -> None:
    ends = Ends()
    ends.run(heals_ms * MS)
    assert ends.prober.state is ProberState.FAILED
    assert len(ends.batches_ns) == POLICY.attempts
    assert ends.requester_ns is None
    assert not ends.prober.on_acknowledged()


def test_a_gap_between_alive_messages_begins_the_count_anew() -> None:
    answerer = Answerer(POLICY)
    heard = [answerer.on_alive(number, 0) for number in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12)]
    assert heard == [False] * 11 + [True], "6 is the first after the gap; six more in a row"


def test_a_sender_that_asks_anew_is_counted_although_its_word_on_the_last_return_was_lost() -> None:
    """It must have restored its end to have failed again; nobody waits for its word any more."""

    def restored(word_lost: bool) -> list[bool]:
        answerer = Answerer(POLICY)
        assert [answerer.on_alive(number, 0) for number in range(6)][-1]
        if not word_lost:
            answerer.on_done()
        return [answerer.on_alive(number, S + number) for number in range(7)]

    assert restored(word_lost=True) == restored(word_lost=False)


def test_the_rest_of_a_batch_that_was_answered_is_not_counted() -> None:
    answerer = Answerer(POLICY)
    heard = [answerer.on_alive(number, 0) for number in range(30)]
    assert [number for number, restored in enumerate(heard) if restored] == [5]


@given(st.lists(st.integers(0, 40), max_size=60))
def test_nobody_is_restored_by_fewer_than_six_in_a_row(numbers: list[int]) -> None:
    answerer, run, before = Answerer(POLICY), 0, -1
    for number in numbers:
        run = run + 1 if number == before + 1 else 0
        before = number
        if answerer.on_alive(number, 0):
            assert run >= POLICY.sequence + 1
            break


@given(heals_ns=st.integers(0, 30 * S), answers_lost=st.integers(0, 2))
def test_the_requester_comes_back_only_after_the_responder(heals_ns: int, answers_lost: int) -> None:
    ends = Ends()
    ends.run(heals_ns, answers_lost)
    if ends.requester_ns is not None:
        assert ends.responder_ns
        assert max(ends.responder_ns) <= ends.requester_ns
        assert ends.requester_ns >= heals_ns
    assert ends.prober.state in {ProberState.RESTORED, ProberState.FAILED}


def test_after_a_return_the_next_failure_begins_at_nothing() -> None:
    answerer = Answerer(POLICY)
    for number in range(6):
        restored = answerer.on_alive(number, 0)
    assert restored
    assert not answerer.on_alive(6, 1), "it waits for the sender's word"
    answerer.on_done()
    assert [answerer.on_alive(number, 2) for number in range(6)] == [False] * 5 + [True]
