"""Receiver-driven admission: data comes only when its receiver has said that it may, so much at a time. Pure.

As Meta runs with DCQCN off (Gangidi et al., RDMA over Ethernet for Distributed AI Training at Meta Scale, SIGCOMM
2024, section 5): NCCL's receiver sends a clear-to-send for each buffer that it has free, the sender writes only into
those. What is on its way to a receiver at any time is at most its buffers, and so is what can queue for it anywhere.

Both ends know their messages (a collective's tags), so nothing asks: a receiver grants what it expects. All that has
to be carried is ``Grant``, from receiver to sender: the message's tag and how many more of its bytes may be sent.
Each must arrive once, in any order: an RDMA WRITE with immediate on a reliable connection does that. A message larger
than a slice is granted slice by slice, messages in turn. Grants go ahead of data in Meta's network; here they share
the way back with ACKs. What a peer was granted and never sends stays granted: its queue pair has failed, and the job
with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from traffic.congestion.constant import Constant
from traffic.congestion.control import Parameters
from traffic.congestion.scale import Scale


@dataclass(frozen=True, slots=True)
class Grant:
    """A clear-to-send: ``peer`` may send ``size_bytes`` more of the message ``tag``."""

    peer: int
    tag: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a message that may be sent to ``peer`` now."""

    peer: int
    tag: int
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class AdmissionParameters(Parameters):
    """``limit_bytes``: granted by one receiver and not yet arrived, at most; ``slice_bytes``: of one grant, at most."""

    limit_bytes: int
    slice_bytes: int

    def control(self, line_rate_bps: float, scale: Scale) -> Constant:
        """What may be sent is sent at line rate."""
        return Constant(line_rate_bps)

    def receiver(self, scale: Scale) -> AdmissionReceiver:
        """What admits at one receiving NIC."""
        return AdmissionReceiver(max(scale.bytes_(self.limit_bytes), 1), max(scale.bytes_(self.slice_bytes), 1))

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """Nothing admitted, or more with one grant than all together."""
        if self.limit_bytes <= 0:
            yield "limit_bytes", f"{self.limit_bytes} bytes admit nothing; write more, such as 4 MB"
        if self.slice_bytes <= 0:
            yield "slice_bytes", f"{self.slice_bytes} bytes grant nothing; write more, such as 512 KB"
        elif self.slice_bytes > self.limit_bytes > 0:
            yield "slice_bytes", f"{self.slice_bytes} bytes are above the limit of {self.limit_bytes}; write less"


class _Expected:
    __slots__ = ("granted", "peer", "size_bytes", "tag")

    def __init__(self, peer: int, tag: int, size_bytes: int) -> None:
        self.peer, self.tag, self.size_bytes, self.granted = peer, tag, size_bytes, 0


class AdmissionReceiver:
    """Who may send to one NIC, and how much."""

    def __init__(self, limit_bytes: int, slice_bytes: int) -> None:
        self._free_bytes = limit_bytes
        self._slice_bytes = min(slice_bytes, limit_bytes)
        self._waiting: deque[_Expected] = deque()

    def expect(self, peer: int, tag: int, size_bytes: int) -> None:
        """A message of that size is wanted from ``peer``; its buffer is there. ``tag`` is unique at that peer."""
        self._waiting.append(_Expected(peer, tag, size_bytes))

    def on_received(self, bytes_: int) -> None:
        """That many granted bytes arrived, each counted once, whatever their message: room for others."""
        self._free_bytes += bytes_

    def next_grant(self) -> Grant | None:
        """The grant to send now, None when there is no room for one; call until then after either of the above.

        A slice is granted whole, so that no grant is of a few bytes.
        """
        if not self._waiting:
            return None
        message = self._waiting[0]
        size = min(self._slice_bytes, message.size_bytes - message.granted)
        if size > self._free_bytes:
            return None
        self._waiting.popleft()
        self._free_bytes -= size
        message.granted += size
        if message.granted < message.size_bytes:
            self._waiting.append(message)
        return Grant(message.peer, message.tag, size)


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

    def on_grant(self, peer: int, tag: int, size_bytes: int) -> Part | None:
        """``peer`` granted that much more of a message; what may be sent now because of it."""
        message = self._messages.setdefault((peer, tag), _Message())
        message.granted += size_bytes
        return self._take(peer, tag, message)

    def _take(self, peer: int, tag: int, message: _Message) -> Part | None:
        if message.size_bytes is None or message.taken >= message.granted:
            return None
        part = Part(peer, tag, message.taken, message.granted - message.taken)
        message.taken = message.granted
        if message.taken >= message.size_bytes:
            del self._messages[peer, tag]
        return part
