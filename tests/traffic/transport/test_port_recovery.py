"""A failed queue pair comes back when its port does, as NCCL's port recovery has it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.transport.port_recovery import Answerer, PortRecovery, Prober, ProberState

MS, S = 1_000_000, 1_000_000_000
POLICY = PortRecovery()
LATENCY_NS = MS


class Ends:
    """Both of them; what they say to each other at ``now_ns`` is lost, or arrives a millisecond later."""

    def __init__(self, policy: PortRecovery = POLICY) -> None:
        self.prober, self.answerer = Prober(policy, 0), Answerer(policy)
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


BACKS_OFF = PortRecovery(backoff=1.6)
DATAGRAMS = PortRecovery(over="ud")


def test_a_back_off_lengthens_each_wait_up_to_the_longest() -> None:
    ends = Ends(replace(BACKS_OFF, longest_ns=12 * S))
    ends.run(heals_ns=10**3 * S)
    assert ends.batches_ns == [200 * MS, 5200 * MS, 13_200 * MS, 25_200 * MS, 37_200 * MS]
    assert ends.prober.state is ProberState.FAILED


@pytest.mark.parametrize("away_s", [26, 16])
def test_a_link_that_is_away_for_longer_than_the_attempts_returns_with_a_back_off_alone(away_s: int) -> None:
    given_up, back = Ends(), Ends(BACKS_OFF)
    for ends in (given_up, back):
        ends.run(away_s * S)
    assert (given_up.prober.state, back.prober.state) == (ProberState.FAILED, ProberState.RESTORED)
    assert len(given_up.batches_ns) == len(back.batches_ns) == POLICY.attempts
    assert back.requester_ns == 46_480 * MS


@pytest.mark.parametrize(("heals_ms", "uc_ms", "ud_ms"), [(0, 5200, 200), (201, 10_200, 5200), (5201, 15_200, 10_200)])
def test_datagrams_bring_a_queue_pair_back_one_batch_earlier(heals_ms: int, uc_ms: int, ud_ms: int) -> None:
    uc, ud = Ends(), Ends(DATAGRAMS)
    for ends in (uc, ud):
        ends.run(heals_ms * MS)
    assert (uc.requester_ns, ud.requester_ns) == (uc_ms * MS, ud_ms * MS)
    assert len(uc.batches_ns) == len(ud.batches_ns) + 1, "five packets fewer for each queue pair"


@pytest.mark.parametrize("heals_ms", [20_200, 20_201])
def test_datagrams_may_return_with_the_very_last_batch(heals_ms: int) -> None:
    ends = Ends(DATAGRAMS)
    ends.run(heals_ms * MS)
    assert ends.requester_ns == (20_200 * MS if heals_ms == 20_200 else None)


@given(st.permutations(range(5)))
def test_datagrams_may_overtake_each_other_and_messages_of_a_connection_may_not(order: list[int]) -> None:
    ud, uc = Answerer(DATAGRAMS), Answerer(POLICY)
    assert [ud.on_alive(number, 0) for number in order] == [False] * 4 + [True]
    second = [uc.on_alive(number, S) for number in (*order, *range(5, 10))]
    assert any(second[:6]) == (order == sorted(order)), "a gap begins the count anew"


@pytest.mark.parametrize("lost", range(5))
def test_a_datagram_that_is_lost_costs_its_whole_batch(lost: int) -> None:
    answerer = Answerer(DATAGRAMS)
    assert not any(answerer.on_alive(number, 0) for number in range(5) if number != lost)
    assert [answerer.on_alive(number, S) for number in range(5, 10)] == [False] * 4 + [True]


def test_a_datagram_of_an_older_batch_completes_no_newer_one() -> None:
    answerer = Answerer(DATAGRAMS)
    assert not any(answerer.on_alive(number, 0) for number in (0, 1, 2, 3, 5, 6, 7, 8, 4))
    assert answerer.on_alive(9, 0)


def test_a_batch_of_datagrams_is_answered_again_when_the_first_answer_was_lost() -> None:
    answerer = Answerer(DATAGRAMS)
    assert [answerer.on_alive(number, 0) for number in range(5)][-1]
    assert not any(answerer.on_alive(number, 5 * S) for number in range(5, 10)), "it waits for the sender's word"
    assert [answerer.on_alive(number, 10 * S) for number in range(10, 15)] == [False] * 4 + [True]
    assert [answerer.on_alive(number, 11 * S) for number in range(5)] == [False] * 4 + [True], "it failed again"


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
