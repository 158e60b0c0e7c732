"""The receiving end of a multipath queue pair answers where packets came from, and never twice."""

from __future__ import annotations

import numpy as np
import pytest

from hpn.traffic.congestion.parameter_sets import PARAMETERS
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.jobengine.multipath_receiver import MultipathReceiver
from hpn.traffic.multipath.sack import pack_sack, read_sack
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.transport.arrivals import ArrivedRun
from hpn.traffic.transport.inbox import Packets
from hpn.traffic.transport.packets import Opcode
from tests.traffic.jobengine.network import planned

PLAN = planned("{collective: {kind: all-reduce, size: 1 MB}, transport: {use: multipath, paths: 8}}")
MTU = PLAN.transport.path_mtu
STATIC = [EntropyValue(50_000 + path, path % 2, back=(3, 1)[path % 2]) for path in range(8)]
THEIRS = [EntropyValue(50_000 + path, path % 2) for path in range(8)]
OURS = [EntropyValue(60_000 + path, path % 2) for path in range(4)]


@pytest.fixture
def receiver() -> MultipathReceiver:
    made = MultipathReceiver(PLAN.queue_pairs[0], PLAN.transport, PLAN.acks, None)
    made.set_values(THEIRS, OURS)
    return made


def run_of(psn: int, count: int, value: int, *, size: int = MTU, asks: bool = False, last: bool = False) -> ArrivedRun:
    opcodes = bytes([Opcode.WRITE_ONLY] * count)
    if last:
        opcodes = opcodes[:-1] + bytes([Opcode.WRITE_ONLY_IMMEDIATE])
    packets = Packets(
        opcodes, [size] * count, np.zeros(count, np.uint64), [MTU * (psn + k) for k in range(count)], [0] * count
    )
    return ArrivedRun(0, 1, psn, asks, 0, range(count), packets, [value] * count)


@pytest.mark.parametrize("path", range(8))
def test_an_acknowledgement_leaves_by_the_port_that_the_newest_packet_left_by(
    receiver: MultipathReceiver, path: int
) -> None:
    (sack,) = receiver.on_arrived(run_of(0, 1, 50_000 + path, asks=True), 0).sacks
    assert (sack.value, sack.newest) == (50_000 + path, 0)
    taken = [receiver.reply_path(sack.value) for _ in range(4)]
    assert {OURS[way].port for way in taken} == {path % 2}
    assert taken[:2] == taken[2:], "its paths take turns"
    assert len(set(taken)) == 2
    assert receiver.port({}) == path % 2


def test_a_delayed_acknowledgement_says_how_long_the_newest_packet_waited(receiver: MultipathReceiver) -> None:
    late_ns = PLAN.acks.delay_ns
    assert receiver.on_arrived(run_of(0, 1, 50_000), 0).sacks == ()
    assert receiver.on_arrived(run_of(1, 1, 50_001), late_ns // 4).sacks == ()
    (sack,) = receiver.on_timer(late_ns).sacks
    assert sack.waited_ns == late_ns - late_ns // 4
    read = read_sack(sack.psn, pack_sack(sack))
    assert read is not None
    assert 0 <= sack.waited_ns - read.waited_ns < 16_384
    (prompt,) = receiver.on_arrived(run_of(2, 1, 50_002, asks=True), 2 * late_ns).sacks
    assert prompt.waited_ns == 0


def test_an_acknowledgement_goes_back_over_the_links_of_its_packet_where_they_are_known(
    receiver: MultipathReceiver,
) -> None:
    """One by another path could be lost on a link that the packet never met, and the good path would be denied."""
    receiver.set_values(STATIC, OURS)
    assert [receiver.reply_path(value.sport) for value in STATIC for _ in range(2)] == [3, 3, 1, 1] * 4
    assert receiver.port({}) == OURS[1].port


def test_while_the_port_has_no_path_back_another_port_has(receiver: MultipathReceiver) -> None:
    receiver.set_values(THEIRS, [EntropyValue(60_000, 1), EntropyValue(60_001, 1)])
    assert receiver.reply_path(50_000) in (0, 1)
    assert receiver.port({}) == 1


def test_each_probe_has_its_own_answer_at_once_and_counts_as_nothing(receiver: MultipathReceiver) -> None:
    receiver.on_arrived(run_of(0, 3, 50_001), 0)
    (sack,) = receiver.on_arrived(run_of(2, 1, 50_004, size=0), 5).sacks
    assert (sack.probe, sack.value, sack.psn) == (True, 50_004, 2)
    assert receiver.inbox.bytes_ == 3 * MTU
    assert receiver.responder.counters.packets == 3


def test_a_trimmed_packet_is_asked_for_at_once_and_counts_as_nothing(receiver: MultipathReceiver) -> None:
    receiver.on_arrived(run_of(0, 3, 50_001), 0)
    (sack,) = receiver.on_trimmed(5, 50_004, 5).sacks
    assert (sack.trimmed, sack.probe, sack.value, sack.newest, sack.psn) == (True, False, 50_004, 5, 2)
    assert receiver.inbox.bytes_ == 3 * MTU
    assert receiver.responder.counters.packets == 3


def test_a_trimmed_packet_makes_a_receiver_of_dcqcn_notify_its_sender() -> None:
    values = PARAMETERS["simai-200g"].values
    made = MultipathReceiver(PLAN.queue_pairs[0], PLAN.transport, PLAN.acks, values.notifier(Scale()))
    made.set_values(THEIRS, OURS)
    made.on_trimmed(5, 50_004, 10**6)
    due_ns = made.deadline_ns()
    assert due_ns is not None
    assert made.on_notice_timer(due_ns)


def test_packets_are_written_as_they_come_and_messages_complete_in_order(receiver: MultipathReceiver) -> None:
    later = receiver.on_arrived(run_of(2, 2, 50_001, last=True), 0)
    assert [(piece.address, piece.size_bytes) for piece in later.written] == [(2 * MTU, 2 * MTU)]
    assert receiver.msn == 0
    again = receiver.on_arrived(run_of(2, 2, 50_002, last=True), 1)
    assert list(again.written) == []
    assert len(again.sacks) == 1, "a duplicate is answered at once"
    first = receiver.on_arrived(run_of(0, 2, 50_003, last=True), 2)
    assert [piece.address for piece in first.written] == [0]
    assert receiver.msn == 2


def test_a_packet_without_sense_is_refused_and_nothing_is_written_any_more(receiver: MultipathReceiver) -> None:
    wrong = run_of(0, 2, 50_000)
    wrong = wrong._replace(packets=Packets(wrong.packets.opcodes, [MTU, 7], wrong.packets.words, [0, MTU], [0, 0]))
    assert receiver.on_arrived(wrong, 0).invalid == 0
    assert list(receiver.on_arrived(run_of(5, 1, 50_000), 1).written) == []
