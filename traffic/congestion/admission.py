"""Receiver-driven admission: data comes only when its receiver has said that it may, so much at a time. Pure.

As Meta runs with DCQCN off (Gangidi et al., RDMA over Ethernet for Distributed AI Training at Meta Scale, SIGCOMM
2024, section 5): NCCL's receiver sends a clear-to-send for each buffer that it has free, the sender writes only into
those. What is on its way to a receiver at any time is at most its buffers, and so is what can queue for it anywhere.

Both ends know their messages (a collective's tags), so nothing asks: a receiver grants what it waits for. All that has
to be carried is ``Grant``, from receiver to sender: the message's tag and how many of its bytes may have been sent. As
that is a sum, grants may come in any order and twice, but each must come: an RDMA WRITE with immediate on a reliable
connection does that. A message larger than a slice is granted slice by slice, messages in turn. Grants go ahead of data
in Meta's network; here they share the way back with ACKs. What a peer was granted and never sends stays granted: its
queue pair has failed, and the job with it.

A peer may have been granted what it cannot send yet, because it waits for others that wait for grants. So one slice is
kept for the message that comes first in the order in which operations could be done one by one: all before it is done,
so nothing holds it up but a grant, and as that is so of the first message of the whole job, the job always goes on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from hpn.traffic.transport.ranges import Ranges


@dataclass(frozen=True, slots=True)
class Grant:
    """A clear-to-send: ``peer`` may have sent the message ``tag`` up to that byte."""

    peer: int
    tag: int
    up_to: int


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a message that may be sent to ``peer`` now."""

    peer: int
    tag: int
    offset: int
    size_bytes: int


Place = tuple[int, int]
"""Of a message among all that a receiver ever waits for: its iteration, and its operation in there."""


class _Expected:
    __slots__ = ("arrived", "granted", "peer", "received_bytes", "size_bytes", "tag")

    def __init__(self, peer: int, tag: int, size_bytes: int) -> None:
        self.peer, self.tag, self.size_bytes = peer, tag, size_bytes
        self.granted = self.received_bytes = 0
        self.arrived = Ranges()


class AdmissionReceiver:
    """Who may send to one rank, and how much."""

    def __init__(self, limit_bytes: int, slice_bytes: int) -> None:
        """``slice_bytes`` at most ``limit_bytes``."""
        self._slice_bytes = slice_bytes
        self._free_bytes = limit_bytes - slice_bytes  # for whose turn it is; a slice is kept for the first message
        self._turns: deque[_Expected] = deque()  # not granted whole
        self._expected: dict[tuple[int, int], _Expected] = {}  # not there whole; by peer and tag
        self._order: list[tuple[Place, int, int]] = []  # heap: place, peer, tag; those that are there too

    def expect(self, peer: int, tag: int, size_bytes: int, place: Place) -> None:
        """A message of that size is wanted from ``peer``; its buffer is there. ``tag`` is unique at that peer."""
        message = self._expected[peer, tag] = _Expected(peer, tag, size_bytes)
        self._turns.append(message)
        heappush(self._order, (place, peer, tag))

    def on_received(self, peer: int, tag: int, offset: int, size_bytes: int) -> None:
        """Bytes of a message arrived: room for others. What was there before changes nothing."""
        message = self._expected.get((peer, tag))
        if message is None:
            return
        new = sum(stop - start for start, stop in message.arrived.add(offset, offset + size_bytes))
        message.received_bytes += new
        self._free_bytes += new
        if message.received_bytes == message.size_bytes:
            del self._expected[peer, tag]

    def next_grant(self) -> Grant | None:
        """The grant to send now, None when there is no room for one; call until then after either of the above.

        A slice is granted whole, so that no grant is of a few bytes.
        """
        first = self._first()
        if first is not None and first.granted == first.received_bytes:
            self._turns.remove(first)
            return self._grant(first, self._slice_of(first))
        if not self._turns or (size := self._slice_of(self._turns[0])) > self._free_bytes:
            return None
        return self._grant(self._turns.popleft(), size)

    def _slice_of(self, message: _Expected) -> int:
        return min(self._slice_bytes, message.size_bytes - message.granted)

    def _grant(self, message: _Expected, size_bytes: int) -> Grant:
        self._free_bytes -= size_bytes
        message.granted += size_bytes
        if message.granted < message.size_bytes:
            self._turns.append(message)
        return Grant(message.peer, message.tag, message.granted)

    def _first(self) -> _Expected | None:
        """Of those that are not there whole, the one before all others."""
        while self._order:
            _, peer, tag = self._order[0]
            if (peer, tag) in self._expected:
                return self._expected[peer, tag]
            heappop(self._order)
        return None


class _Message:
    __slots__ = ("granted", "size_bytes", "taken")

    def __init__(self) -> None:
        self.size_bytes: int | None = None  # not posted yet
        self.taken = self.granted = 0


class AdmissionSender:
    """What one rank may send; messages and their grants may come in any order."""

    def __init__(self) -> None:
        self._messages: dict[tuple[int, int], _Message] = {}

    def post(self, peer: int, tag: int, size_bytes: int) -> Part | None:
        """A message for ``peer`` is ready; what of it has been granted already."""
        message = self._messages.setdefault((peer, tag), _Message())
        message.size_bytes = size_bytes
        return self._take(peer, tag, message)

    def on_grant(self, peer: int, tag: int, up_to: int) -> Part | None:
        """``peer`` granted a message up to that byte; what may be sent now because of it."""
        message = self._messages.setdefault((peer, tag), _Message())
        message.granted = max(message.granted, up_to)
        return self._take(peer, tag, message)

    def _take(self, peer: int, tag: int, message: _Message) -> Part | None:
        if message.size_bytes is None or message.taken >= message.granted:
            return None
        part = Part(peer, tag, message.taken, message.granted - message.taken)
        message.taken = message.granted
        if message.taken >= message.size_bytes:
            del self._messages[peer, tag]
        return part
