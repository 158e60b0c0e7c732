"""A kernel that takes nothing costs packets, as a full link does, and never the worker's time."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.io.sendmmsg import PacketRows
from hpn.traffic.jobengine import device, nic_inputs
from hpn.traffic.jobengine.device import NO_ROOM, Device
from hpn.traffic.jobengine.receiver import Receiver
from hpn.traffic.jobengine.sender import Sender
from hpn.traffic.jobengine.sending_end import Part
from hpn.traffic.transport.outgoing import Outgoing
from hpn.traffic.transport.packets import Envelope
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.responder import Reply
from hpn.traffic.transport.work import WorkRequest
from hpn.traffic.workers.messages import NicSpec
from tests.traffic.jobengine.network import planned, setups
from tests.traffic.transport.link import batch, packets_of

PLAN = planned("{collective: {kind: all-reduce, size: 1 MB}, gpus: 1, window: 8192, ib_timeout: 18}")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device whose sockets take nothing."""

    def opened(*_: object, **__: object) -> socket.socket:
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    monkeypatch.setattr(device, "open_raw_sender", opened)
    monkeypatch.setattr(nic_inputs, "open_receiver", opened)
    monkeypatch.setattr(PacketRows, "hand_over", lambda *_: (0, errno.EAGAIN))
    (setup,) = setups(PLAN, workers=1)
    nics = tuple(NicSpec(nic.name, f"10.0.0.{at}", 0) for at, nic in enumerate(setup.nics, start=1))
    made = Device(nics, {nic.name: NetNs(nic.name, 0) for nic in nics}, 4096, 16)
    for pair in PLAN.queue_pairs:
        made.open_sender(pair)
        made.open_receiver(pair)
    yield made
    made.close()


def _sender() -> tuple[Sender, Run]:
    """One that has 3,000 packets to send at once."""
    (setup,) = setups(PLAN, workers=1)
    pair = setup.senders[0]
    sender = Sender(pair, PLAN.transport, PLAN.control.control(1e9, PLAN.scale))
    sender.post(Part(0, np.zeros(3000, np.uint64)), 3000 * 4096, 0, 1, 0)
    (run,), _ = sender.take(3000, 0)
    return sender, run


def test_what_the_kernel_takes_not_is_lost_when_there_is_no_room_for_it(full: Device) -> None:
    sender, run = _sender()
    assert not full.holds
    full.data(sender, run, 0)
    assert full.refused()[NO_ROOM] == 3000 - 2048
    assert full.holds


def test_replies_are_lost_too(full: Device) -> None:
    sender, run = _sender()
    full.data(sender, run, 0)
    lost = full.refused()[NO_ROOM]
    receiver = Receiver(PLAN.queue_pairs[0], PLAN.transport, PLAN.acks, None)
    full.reply(receiver, Reply(0, nak=False))
    full.notify(receiver)
    assert full.refused()[NO_ROOM] == lost + 2


def test_acknowledgements_say_what_they_are_and_how_many_messages_are_complete(
    full: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Syndromes of IBTA vol. 1, table 44: ACK without credits, PSN sequence error, invalid request."""
    said: list[tuple[int, int, int]] = []  # PSN, syndrome, MSN
    monkeypatch.setattr(Outgoing, "add_ack", lambda _, __, psn, syndrome, msn, **___: said.append((psn, syndrome, msn)))
    receiver = Receiver(PLAN.queue_pairs[0], PLAN.transport, PLAN.acks, None)
    for number, first in enumerate((0, 2)):  # two messages of two packets; of the second the first comes alone
        run = Run(WorkRequest(number, 8192, 0, 7), 0, 2 - number, first, again=False)
        whole = batch(list(packets_of(run, PLAN.transport)))
        for reply in receiver.on_run(first, whole, True, 0, 0).replies:
            full.reply(receiver, reply)
    full.reply(receiver, Reply(3, nak=True))
    full.invalid(receiver, 3)
    assert said == [(1, 0x1F, 1), (2, 0x1F, 1), (3, 0x60, 1), (3, 0x61, 1)]


def test_a_queue_pair_s_packets_and_their_acknowledgements_carry_its_dscp_wherever_they_go(
    full: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DSCP 8 and ECT(0) are 0x22 (RFC 2474, RFC 3168)."""
    seen: list[int] = []
    monkeypatch.setattr(Outgoing, "move_path", lambda _, __, envelope: seen.append(envelope.tos))
    usual = PLAN.queue_pairs[0]
    for pair, tos in ((usual, 0x02), (replace(usual, dscp=8), 0x22)):
        full.move(pair, 50_000, ack=False)
        full.move(pair, 50_000, ack=True)
        full.renew([pair], [pair], 1)
        assert seen == [tos] * 4
        seen.clear()


def test_the_packets_of_a_sprayed_queue_pair_leave_by_its_source_ports_in_turn(
    full: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in another life of the job; a queue pair that has moved has one."""
    sports: dict[int, int] = {}
    left: list[tuple[int, int, int]] = []  # source port, PSN, packets
    move_path, open_path = Outgoing.move_path, Outgoing.open_path

    def moved(outgoing: Outgoing, path: int, envelope: Envelope) -> None:
        move_path(outgoing, path, envelope)
        sports[path] = envelope.sport

    def opened(outgoing: Outgoing, fd: int, envelope: Envelope, ack_every: int = 1) -> int:
        path = open_path(outgoing, fd, envelope, ack_every)
        sports[path] = envelope.sport
        return path

    def added(_: Outgoing, path: int, run: Run, words: object, sent_ns: int) -> None:
        left.append((sports[path], run.psn, run.count))

    monkeypatch.setattr(Outgoing, "move_path", moved)
    monkeypatch.setattr(Outgoing, "open_path", opened)
    monkeypatch.setattr(Outgoing, "add", added)
    sender, run = _sender()
    pair = sender.pair
    full.spray(pair, (50_001, 50_002, 50_003))
    full.data(sender, replace(run, count=7), 0)
    assert left == [(50_001 + psn % 3, psn, 1) for psn in range(7)]
    full.renew([pair], [], 1)
    left.clear()
    full.data(sender, replace(run, count=3), 0)
    assert [sport for sport, *_ in left] == [50_002, 50_003, 50_001]  # where it was
    full.move(pair, 50_009, ack=False)
    left.clear()
    full.data(sender, replace(run, count=7), 0)
    assert left == [(50_009, 0, 7)]
