"""One rank's machine: what it posts when, what it keeps until it is awaited, what it finds wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hpn.traffic.collectives.buffer_contents import initial
from hpn.traffic.collectives.compose import Composer
from hpn.traffic.collectives.program import WIRE_TAGS, Op, Piece, Program, Receive, Send, Span, Spend, Stream
from hpn.traffic.collectives.rank import RankMachine
from tests.traffic.collectives.memory import INSIDE, MTU, hosts_of, one, shuffled


def _pair(size: int = 3 * MTU) -> tuple[RankMachine, RankMachine]:
    composer = Composer(hosts_of(2), MTU, INSIDE)
    composer.message(0, 1, size, "hello")
    sender, receiver = composer.programs()
    return RankMachine(sender), RankMachine(receiver)


def test_a_message_is_posted_at_once_with_its_words_and_done_when_acknowledged() -> None:
    sender, _ = _pair()
    (post,) = sender.start(0, 100)
    assert (post.peer, post.tag, post.size_bytes, post.rail) == (1, 0, 3 * MTU, 0)
    assert post.words.tolist() == initial(0, 0, Piece(0, 0, 3 * MTU), MTU).tolist()
    assert not sender.idle
    assert sender.on_sent(post.op, 250) == []
    assert sender.idle
    assert {(t.begin_ns, t.end_ns, t.wrong) for t in sender.take_timed()} == {(100, 250, 0)}
    assert sender.take_timed() == []


def test_what_arrives_before_its_iteration_waits_for_it_and_what_is_late_changes_nothing() -> None:
    sender, receiver = _pair()
    for iteration in range(3):
        (post,) = sender.start(iteration, iteration)
        sender.on_sent(post.op, iteration)
        assert receiver.on_bytes(0, post.tag, 0, post.words, 5) == []
    for iteration in range(3):
        receiver.start(iteration, 10 + iteration)
        assert receiver.idle, "all of it is there already"
    assert [timed.wrong for timed in receiver.take_timed()] == [0] * 6
    receiver.start(3, 20)
    assert receiver.on_bytes(0, 1, 0, np.zeros(3, np.uint64), 21) == [], "of iteration 1"
    assert not receiver.idle


def test_a_late_copy_is_not_taken_for_another_message() -> None:
    """2^32 is no multiple of 3 tags: counted from the wrong end, a copy of the long message would be the short one."""
    composer = Composer(hosts_of(2), MTU, INSIDE)
    for size in (3 * MTU, MTU, MTU):
        composer.message(0, 1, size, "hello")
    programs = composer.programs()
    sender, receiver = (RankMachine(program) for program in programs)
    first, *others = sender.start(0, 0)
    receiver.start(0, 0)
    for post in (first, *others):
        receiver.on_bytes(0, post.tag, 0, post.words, 0)
    receiver.start(1, 1)
    assert receiver.on_bytes(0, first.tag, 0, first.words, 2) == []


def test_a_part_that_comes_twice_counts_once() -> None:
    sender, receiver = _pair()
    (post,) = sender.start(0, 0)
    receiver.start(0, 0)
    for begin, end in ((2, 3), (0, 1), (0, 1), (2, 3)):
        receiver.on_bytes(0, post.tag, begin * MTU, post.words[begin:end], 1)
    assert not receiver.idle, "packet 1 is missing"
    receiver.on_bytes(0, post.tag, 0, post.words[:2], 2)
    assert receiver.idle
    assert [timed.wrong for timed in receiver.take_timed()] == [0, 0]


def test_the_largest_message_that_a_work_request_may_be_comes_out_right() -> None:
    sender, receiver = _pair(2**31)
    receiver.start(0, 0)
    (post,) = sender.start(0, 0)
    assert (post.size_bytes, len(post.words)) == (2**31, 2**31 // MTU)
    half = len(post.words) // 2
    receiver.on_bytes(0, post.tag, half * MTU, post.words[half:], 1)
    receiver.on_bytes(0, post.tag, 0, post.words[:half], 2)
    assert [timed.wrong for timed in receiver.take_timed()] == [0, 0]


def test_what_was_posted_does_not_change_when_the_piece_does() -> None:
    """A send takes its data when it is ready, before a receive that becomes ready with it puts something else there."""
    piece = Piece(0, 0, MTU)
    ops: tuple[Op, ...] = (
        Spend(0, (), 10, Stream.COMPUTE),
        Send(1, (0,), 1, 0, piece, 0),
        Receive(2, (0,), 1, 0, piece, False),
    )
    machine = RankMachine(Program(0, MTU, 1, ops, ()))
    machine.start(0, 0)
    machine.on_bytes(1, 0, 0, np.array([7], np.uint64), 5)
    (post,) = machine.on_timer(10)
    assert post.words.tolist() == initial(0, 0, piece, MTU).tolist() != [7]
    with pytest.raises(ValueError, match="read-only"):
        post.words[0] = 1


def test_tags_go_on_beyond_32_bits() -> None:
    first = WIRE_TAGS - 3  # one tag in an iteration
    sender, receiver = (RankMachine(machine.program, first) for machine in _pair())
    tags = []
    for iteration in range(first, first + 6):
        (post,) = sender.start(iteration, 0)
        sender.on_sent(post.op, 0)
        tags.append(post.tag)
        receiver.on_bytes(0, post.tag, 0, post.words, 0)
    assert tags == [WIRE_TAGS - 3, WIRE_TAGS - 2, WIRE_TAGS - 1, 0, 1, 2]
    for iteration in range(first, first + 6):
        receiver.start(iteration, 1)
    assert receiver.idle
    assert sum(timed.wrong for timed in receiver.take_timed()) == 0


def test_messages_that_nobody_expects_and_packets_that_do_not_fit_are_refused() -> None:
    sender, receiver = _pair()
    words = np.zeros(1, np.uint64)
    with pytest.raises(ValueError, match="rank 0 expects no message 0 from rank 1"):
        sender.on_bytes(1, 0, 0, words, 0)
    for offset in (3 * MTU, 1):
        with pytest.raises(ValueError, match="are no part of"):
            receiver.on_bytes(0, 0, offset, words, 0)


def test_an_iteration_begins_when_the_one_before_is_over_and_never_again() -> None:
    sender, _ = _pair()
    (post,) = sender.start(0, 0)
    with pytest.raises(ValueError, match="cannot begin iteration 1 after 0"):
        sender.start(1, 0)
    sender.on_sent(post.op, 1)
    with pytest.raises(ValueError, match="is not under way"):
        sender.on_sent(post.op, 2)
    with pytest.raises(ValueError, match="cannot begin iteration 0 after 0"):
        sender.start(0, 2)


def test_a_rank_spends_time_on_one_thing_at_a_time_on_each_stream() -> None:
    spends = (
        Spend(0, (), 100, Stream.COMPUTE),
        Spend(1, (), 50, Stream.COMPUTE),
        Spend(2, (), 70, Stream.NVLINK),
        Spend(3, (1, 2), 0, Stream.COMPUTE),
    )
    spans = tuple(Span(str(at), "compute", (at,)) for at in range(4))
    machine = RankMachine(Program(0, MTU, 1, spends, spans))
    machine.start(0, 1000)
    ends: dict[int, int] = {}
    while (now := machine.deadline_ns()) is not None:
        assert machine.on_timer(now - 1) == []
        assert machine.take_timed() == []
        machine.on_timer(now)
        ends |= {timed.span: timed.end_ns for timed in machine.take_timed()}
    assert ends == {0: 1100, 1: 1150, 2: 1070, 3: 1150}
    assert machine.idle


def test_a_message_that_arrived_is_used_only_once_what_it_comes_after_is_done() -> None:
    composer = Composer(hosts_of(2), MTU, INSIDE)
    computed = composer.compute(1, 500, "compute")
    composer.message(0, 1, MTU, "hello", after={1: (computed,)})
    sender, receiver = (RankMachine(program) for program in composer.programs())
    receiver.start(0, 0)
    (post,) = sender.start(0, 0)
    receiver.on_bytes(0, post.tag, 0, post.words, 10)
    assert not receiver.idle
    receiver.on_timer(500)
    assert receiver.idle
    begin_ns = {receiver.program.spans[t.span].kind: t.begin_ns for t in receiver.take_timed()}
    assert begin_ns == {"compute": 0, "arrival": 500, "iteration": 0}


def _mutated(programs: tuple[Program, ...], rank: int, change: dict[int, Op]) -> tuple[Program, ...]:
    changed = replace(programs[rank], ops=tuple(change.get(op.id, op) for op in programs[rank].ops))
    return tuple(changed if program.rank == rank else program for program in programs)


def _receives(program: Program, reduce: bool) -> list[Receive]:
    return [op for op in program.ops if isinstance(op, Receive) and op.reduce is reduce]


def test_a_sum_taken_twice_is_wrong() -> None:
    """What arrives in the gathering half is added instead of put in place."""
    programs = one("all-reduce", "ring", 4, 20 * MTU)
    op = _receives(programs[1], reduce=False)[0]
    assert shuffled(_mutated(programs, 1, {op.id: replace(op, reduce=True)}), 1).wrong > 0


def test_a_lost_update_is_wrong() -> None:
    """A contribution replaces the sum so far instead of being added."""
    programs = one("all-reduce", "ring", 4, 20 * MTU)
    op = _receives(programs[2], reduce=True)[-1]
    assert shuffled(_mutated(programs, 2, {op.id: replace(op, reduce=False)}), 1).wrong > 0


def test_a_chunk_off_by_one_is_wrong() -> None:
    programs = one("all-reduce", "ring", 4, 20 * MTU)
    op = next(op for op in programs[3].ops if isinstance(op, Send))
    moved = replace(op, piece=replace(op.piece, index=(op.piece.index + 1) % 4))
    assert shuffled(_mutated(programs, 3, {op.id: moved}), 1).wrong > 0


def test_a_send_that_does_not_wait_for_the_sum_is_wrong() -> None:
    programs = one("all-reduce", "ring", 3, 20 * MTU)
    op = [op for op in programs[0].ops if isinstance(op, Send)][1]
    assert shuffled(_mutated(programs, 0, {op.id: replace(op, after=(0,))}), 1).wrong > 0


def test_one_wrong_word_is_one_wrong_block() -> None:
    sender, receiver = _pair()
    (post,) = sender.start(0, 0)
    receiver.start(0, 0)
    words = post.words.copy()
    words[1] ^= np.uint64(1)
    receiver.on_bytes(0, post.tag, 0, words, 1)
    assert {receiver.program.spans[t.span].kind: t.wrong for t in receiver.take_timed()} == {
        "iteration": 0,
        "arrival": 1,
    }


def test_a_program_out_of_order_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 7: operation 0 is out of order"):
        Program(7, MTU, 1, (Spend(0, (0,), 1, Stream.COMPUTE),), ())
    with pytest.raises(ValueError, match="rank 7 has nothing to do"):
        Program(7, MTU, 1, (), ())
