"""Receiver-driven admission: a sender sends only what its receiver has granted. Pure.

Meta runs this with DCQCN off (Gangidi et al., RDMA over Ethernet for Distributed AI Training at Meta Scale, SIGCOMM
2024, section 5). NCCL's receiver sends a clear-to-send for each free buffer, and the sender writes only into those. So
the data in flight to a receiver is limited to its buffers, and so is the queue that it can cause anywhere.

Both ends know their messages (a collective's tags), so there are no requests: a receiver grants what it waits for. Only
``Grant`` is sent, from receiver to sender: the message's tag and how many of its bytes may have been sent. As that is a
sum, grants may be reordered or duplicated, but each must arrive: an RDMA WRITE with immediate on a reliable connection
ensures that. A message larger than a slice is granted slice by slice, messages in turn. In Meta's network grants have
priority over data; here they share the return path with ACKs. Bytes that were granted to a peer and are never sent stay
granted: its queue pair has failed, and the job with it.

A peer may hold grants that it cannot use yet, because it waits for others that wait for grants. So one slice is
reserved for the first message in an order in which operations could be done one by one. Everything before it is done,
so it waits only for a grant. That holds for the first message of the whole job, so the job cannot deadlock.
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
"""Position of a message among all that a receiver ever waits for: its iteration, and its operation there."""


class _Expected:
    __slots__ = ("arrived", "granted", "peer", "received_bytes", "size_bytes", "tag")

    def __init__(self, peer: int, tag: int, size_bytes: int) -> None:
        self.peer, self.tag, self.size_bytes = peer, tag, size_bytes
        self.granted = self.received_bytes = 0
        self.arrived = Ranges()


class AdmissionReceiver:
    """Grants of one receiving rank: which peers may send, and how much."""

    def __init__(self, limit_bytes: int, slice_bytes: int) -> None:
        """Create the receiver; ``slice_bytes`` is at most ``limit_bytes``."""
        self._slice_bytes = slice_bytes
        self._free_bytes = limit_bytes - slice_bytes  # for messages in turn; a slice is reserved for the first message
        self._turns: deque[_Expected] = deque()  # not completely granted
        self._expected: dict[tuple[int, int], _Expected] = {}  # not completely arrived; by peer and tag
        self._order: list[tuple[Place, int, int]] = []  # heap: place, peer, tag; includes those that have arrived

    def expect(self, peer: int, tag: int, size_bytes: int, place: Place) -> None:
        """Expect a message of that size from ``peer``; its buffer is free. ``tag`` is unique at that peer."""
        message = self._expected[peer, tag] = _Expected(peer, tag, size_bytes)
        self._turns.append(message)
        heappush(self._order, (place, peer, tag))

    def on_received(self, peer: int, tag: int, offset: int, size_bytes: int) -> None:
        """Handle bytes of a message, which make room for others; duplicates are ignored."""
        message = self._expected.get((peer, tag))
        if message is None:
            return
        new = sum(stop - start for start, stop in message.arrived.add(offset, offset + size_bytes))
        message.received_bytes += new
        self._free_bytes += new
        if message.received_bytes == message.size_bytes:
            del self._expected[peer, tag]

    def next_grant(self) -> Grant | None:
        """Return the grant to send now, or None without room; after an expect or arrival, call until None.

        A slice is granted as a whole, so that no grant covers only a few bytes.
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
        """Return the first of the messages that are not completely there."""
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
    """Send permissions of one rank; messages and their grants may come in any order."""

    def __init__(self) -> None:
        self._messages: dict[tuple[int, int], _Message] = {}

    def post(self, peer: int, tag: int, size_bytes: int) -> Part | None:
        """Register a message for ``peer``; return the part that has been granted already."""
        message = self._messages.setdefault((peer, tag), _Message())
        message.size_bytes = size_bytes
        return self._take(peer, tag, message)

    def on_grant(self, peer: int, tag: int, up_to: int) -> Part | None:
        """Handle a grant by ``peer`` up to that byte; return the part that may be sent now."""
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
