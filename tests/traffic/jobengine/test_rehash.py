"""When a queue pair leaves its path: held against a plain count of rounds, and with a network that marks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.jobengine.receiver import Receiver
from hpn.traffic.jobengine.rehash import Cause, RehashPolicy, Rounds
from hpn.traffic.jobengine.setup import Leaves
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.work import WorkRequest
from tests.traffic.jobengine.network import MS, Network, S, planned
from tests.traffic.transport.link import batch, packets_of

POLICY = RehashPolicy(rounds=4, idle_rounds=2, share=0.5, suspend_ns=1000)
JOB = planned("{messages: {pattern: same-rail, size: 1 MB, count: 4}, gpus: 1, window: 32, ib_timeout: 18}")


def _rounds(policy: RehashPolicy = POLICY) -> Rounds:
    return Rounds(policy, random.Random(1))


def _play(rounds: Rounds, shares: Sequence[int], idle: bool = False) -> list[Cause | None]:
    """A round of 10 packets for each share in tenths; of ``idle`` ones each ends with nothing in flight."""
    causes = []
    for number, tenths in enumerate(shares):
        sent = 10 * (number + 1)
        rounds.on_sent(sent)
        more = 0 if idle else 10
        early = rounds.on_acked(tenths, True, sent - 10 + tenths, sent + more, 0) if 0 < tenths < 10 else None
        assert early is None
        rest = 10 if tenths in (0, 10) else 10 - tenths
        causes.append(rounds.on_acked(rest, tenths == 10, sent, sent + more, 0))
    return causes


@given(st.lists(st.integers(0, 10), max_size=60), st.booleans(), st.integers(1, 6), st.integers(0, 6))
def test_it_leaves_after_so_many_marked_rounds_in_a_row(
    shares: list[int], idle: bool, most: int, when_idle: int
) -> None:
    expected: list[Cause | None] = []
    row = 0
    for tenths in shares:
        row = row + 1 if tenths >= 5 else 0
        forced, unused = row == most, idle and 0 < when_idle <= row
        expected.append(Cause.MARKS if forced else Cause.IDLE if unused else None)
        row = 0 if forced or unused else row
    assert _play(_rounds(replace(POLICY, rounds=most, idle_rounds=when_idle)), shares, idle) == expected


def test_a_round_is_what_was_sent_by_its_begin() -> None:
    rounds = _rounds(replace(POLICY, rounds=1))
    rounds.on_sent(10)
    rounds.on_sent(30)  # while the first are under way: they are of the next round
    assert rounds.on_acked(9, True, 9, 30, 0) is None
    assert rounds.on_acked(1, True, 10, 30, 0) is Cause.MARKS
    assert rounds.on_acked(19, False, 29, 40, 0) is None
    assert rounds.on_acked(1, True, 30, 40, 0) is None  # 1 of 20
    assert rounds.on_acked(10, True, 40, 40, 0) is Cause.MARKS


def test_after_a_timeout_marks_move_nothing_for_one_to_two_times_as_long_as_said() -> None:
    for seed in range(20):
        rounds = Rounds(replace(POLICY, rounds=1), random.Random(seed))
        assert rounds.on_timeout(5000) is Cause.TIMEOUT
        rounds.on_sent(1)
        assert rounds.on_acked(1, True, 1, 2, 5999) is None
        assert rounds.on_timeout(5999) is Cause.TIMEOUT
        rounds.on_sent(2)
        assert rounds.on_acked(1, True, 2, 3, 5999 + 2000) is Cause.MARKS


@given(st.lists(st.tuples(st.integers(1, 16), st.integers(0, 16)), min_size=1, max_size=8), st.booleans())
def test_an_acknowledgement_says_whether_half_of_its_packets_came_marked(
    runs: list[tuple[int, int]], echoes: bool
) -> None:
    receiver = Receiver(JOB.queue_pairs[0], JOB.transport, JOB.acks, None, echoes=echoes)
    psn, seen, marked = 0, 0, 0
    for count, marks in runs:
        run = Run(WorkRequest(0, 1 << 20, 0, 0), psn, count, psn, again=False)
        marks = min(marks, count)
        receiver.on_run(psn, batch(list(packets_of(run, JOB.transport))), False, marks, 0)
        psn, seen, marked = psn + count, seen + count, marked + marks
    assert receiver.echo() == (echoes and marked > 0 and 2 * marked >= seen)
    assert not receiver.echo()  # nothing came since


def _ran(marked: Callable[[int], bool], for_ns: int = 2 * S, policy: RehashPolicy = POLICY) -> list[Leaves]:
    net = Network(replace(JOB, rehash=policy), marked=marked)
    net.begin()
    net.pass_(for_ns)
    return [each for each in net.errors if isinstance(each, Leaves)]


def test_queue_pairs_whose_packets_are_marked_leave_again_and_again_and_others_never() -> None:
    marked = _ran(lambda _n: True)
    assert {each.flow for each in marked} == {flow.id for flow in JOB.flows}
    assert {each.cause for each in marked} <= {Cause.MARKS, Cause.IDLE}
    assert len(marked) > 3 * len(JOB.flows)
    assert _ran(lambda _n: False) == []
    draw = random.Random(1)
    assert _ran(lambda _n: draw.random() < 0.1, policy=replace(POLICY, idle_rounds=0)) == []  # a tenth is not half


def test_who_hears_nothing_leaves_by_its_timer_and_not_by_marks_for_a_while() -> None:
    net = Network(replace(JOB, rehash=replace(POLICY, suspend_ns=60 * S)), marked=lambda _n: True)
    net.begin()
    net.pass_(20 * MS)
    silent = JOB.flows[0]
    net.dead.add(silent.src_nic)
    net.errors.clear()
    net.run(lambda: bool(_of(net, silent.id)))
    assert _of(net, silent.id) == [Cause.TIMEOUT]
    net.dead.clear()
    net.pass_(3 * S)
    assert _of(net, silent.id) == [Cause.TIMEOUT]


def _of(net: Network, flow: int) -> list[Cause]:
    return [each.cause for each in net.errors if isinstance(each, Leaves) and each.flow == flow]


@pytest.mark.parametrize("policy", [None, POLICY])
def test_acknowledgements_speak_of_marks_only_where_somebody_asks(policy: RehashPolicy | None) -> None:
    net = Network(replace(JOB, rehash=policy), marked=lambda _n: True)
    net.iterations(1)
    assert any(isinstance(each, Leaves) for each in net.errors) == (policy is not None)
