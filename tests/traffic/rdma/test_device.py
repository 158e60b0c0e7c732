"""A kernel that takes nothing costs packets, as a full link does, and never the worker's time."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from testbed.kernel.ns import NetNs
from tests.traffic.rdma.network import planned, setups
from traffic.messages import NicSpec
from traffic.rc.requester import Run
from traffic.rc.responder import Reply
from traffic.rdma import device
from traffic.rdma.device import NO_ROOM, Device
from traffic.rdma.receiver import Receiver
from traffic.rdma.sender import Part, Sender
from traffic.sendmmsg import PacketRows

PLAN = planned("{collective: {kind: all-reduce, size: 1 MB}, gpus: 1, window: 8192, ib_timeout: 18}")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device whose sockets take nothing."""

    def opened(*_: object, **__: object) -> socket.socket:
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    monkeypatch.setattr(device, "open_raw_sender", opened)
    monkeypatch.setattr(device, "open_receiver", opened)
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
    (run,) = sender.take(3000, 0)
    return sender, run


def test_what_the_kernel_takes_not_is_lost_when_there_is_no_room_for_it(full: Device) -> None:
    sender, run = _sender()
    assert not full.holds
    full.data(sender, run, 0)
    assert full.socket_errors[NO_ROOM] == 3000 - 2048
    assert full.holds


def test_replies_are_lost_too(full: Device) -> None:
    sender, run = _sender()
    full.data(sender, run, 0)
    lost = full.socket_errors[NO_ROOM]
    receiver = Receiver(PLAN.queue_pairs[0], PLAN.transport, PLAN.acks, None)
    full.reply(receiver, Reply(0, nak=False))
    full.notify(receiver)
    assert full.socket_errors[NO_ROOM] == lost + 2
