"""From packets in order to memory and messages, and packets that make no sense."""

from __future__ import annotations

import numpy as np
import pytest

from hpn.traffic.transport.inbox import Arrived, Inbox, Packets
from hpn.traffic.transport.packets import Opcode

MTU = 1024
FIRST, MIDDLE, LAST, ONLY = Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE, Opcode.WRITE_LAST, Opcode.WRITE_ONLY
LAST_IMMEDIATE, ONLY_IMMEDIATE = Opcode.WRITE_LAST_IMMEDIATE, Opcode.WRITE_ONLY_IMMEDIATE


def packets(*rows: tuple[int, int], address: int = 0x8000_0000_0000_0000, immediate: int = 0xFFFF_FFFF) -> Packets:
    """Packets of (opcode, payload bytes); words are 0, 1, 2, ..."""
    count = len(rows)
    return Packets(
        bytes(opcode for opcode, _ in rows),
        [size for _, size in rows],
        np.arange(count, dtype=np.uint64),
        [address] * count,
        [immediate] * count,
    )


def test_messages_in_one_run_are_told_apart() -> None:
    inbox = Inbox(MTU)
    inbox.keep(0, packets((FIRST, MTU), (LAST, 7), (ONLY_IMMEDIATE, 1), (FIRST, MTU), (MIDDLE, MTU), address=4096))
    delivery = inbox.deliver(5)
    assert [(piece.address, piece.words.tolist(), piece.size_bytes) for piece in delivery.written] == [
        (4096, [0, 1], MTU + 7),
        (4096, [2], 1),
        (4096, [3, 4], 2 * MTU),
    ]
    assert delivery.arrived == [Arrived(None, 4096, MTU + 7), Arrived(0xFFFF_FFFF, 4096, 1)]
    assert (inbox.bytes_, inbox.messages) == (3 * MTU + 8, 2)


def test_whole_messages_are_told_of_when_all_of_each_is_there() -> None:
    inbox = Inbox(MTU, whole=True)
    inbox.keep(0, packets((FIRST, MTU), (MIDDLE, MTU), address=4096))
    assert inbox.deliver(2).written == []
    inbox.keep(2, packets((LAST, 7), (ONLY_IMMEDIATE, 1), (FIRST, MTU), address=8192))
    written = inbox.deliver(5).written
    assert [(piece.address, piece.words.tolist(), piece.size_bytes) for piece in written] == [
        (4096, [0, 1, 0], 2 * MTU + 7),
        (8192, [1], 1),
    ]
    assert (inbox.bytes_, inbox.messages) == (3 * MTU + 8, 2)
    inbox.keep(5, packets((LAST, 1)))
    assert [piece.words.tolist() for piece in inbox.deliver(6).written] == [[2, 0]]


def test_a_message_goes_on_in_the_next_run_behind_what_is_there() -> None:
    inbox = Inbox(MTU, first_psn=9)
    inbox.keep(9, packets((FIRST, MTU), (MIDDLE, MTU)))
    inbox.deliver(11)
    inbox.keep(11, packets((MIDDLE, MTU), (LAST_IMMEDIATE, MTU), address=0, immediate=5))
    delivery = inbox.deliver(13)
    assert [piece.address for piece in delivery.written] == [0x8000_0000_0000_0000 + 2 * MTU]
    assert delivery.arrived == [Arrived(5, 0x8000_0000_0000_0000, 4 * MTU)]


def test_what_came_before_its_turn_waits_for_it() -> None:
    inbox = Inbox(MTU)
    inbox.keep(1, packets((LAST, 9)))
    assert inbox.deliver(0).written == []
    inbox.keep(0, packets((FIRST, MTU)))
    assert inbox.deliver(2).arrived == [Arrived(None, 0x8000_0000_0000_0000, MTU + 9)]


@pytest.mark.parametrize(
    ("rows", "good"),
    [
        ([(LAST, 5)], 0),
        ([(MIDDLE, MTU)], 0),
        ([(ONLY, 5), (LAST_IMMEDIATE, 5)], 1),
        ([(FIRST, MTU), (FIRST, MTU)], 1),
        ([(FIRST, MTU), (ONLY, 5)], 1),
        ([(FIRST, MTU), (MIDDLE, MTU - 1), (LAST, 1)], 0),
        ([(FIRST, 5)], 0),
        ([(FIRST, MTU), (LAST, MTU + 1)], 0),
        ([(ONLY, 3), (FIRST, 5), (LAST, MTU)], 1),
        ([(ONLY, MTU + 1)], 0),
        ([(ONLY, 0)], 0),
        ([(Opcode.ACKNOWLEDGE, 0)], 0),
    ],
)
def test_what_makes_no_sense_ends_the_delivery_for_good(rows: list[tuple[int, int]], good: int) -> None:
    inbox = Inbox(MTU)
    inbox.keep(0, packets(*rows))
    delivery = inbox.deliver(len(rows))
    assert delivery.invalid
    assert sum(len(piece.words) for piece in delivery.written) == good
    inbox.keep(len(rows), packets((ONLY, 1)))
    again = inbox.deliver(len(rows) + 1)
    assert (again.written, again.arrived, inbox.invalid) == ([], [], True)
