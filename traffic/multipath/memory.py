"""Memory end of a multipath responder: each packet is written where it says, whatever came before it. PURE."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from hpn.traffic.transport.inbox import Packets, Written
from hpn.traffic.transport.packets import Opcode

_MIDDLE, _LAST = Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMMEDIATE


class Memory:
    """Writes of one queue pair. ``bytes_`` and ``messages`` so far are goodput, as nothing counts twice.

    Each packet is a WRITE of its own with its own address, and the last of a message has an immediate. A message counts
    as complete when all before its end is there, so messages complete in the order of their posts. ``invalid``: a
    packet made no sense, and nothing is written from then on.
    """

    def __init__(self, path_mtu: int) -> None:
        self._path_mtu = path_mtu
        self._ends: list[int] = []  # absolute PSNs of last packets that are there, of messages that are not complete
        self.bytes_ = 0
        self.messages = 0
        self.invalid = False

    def write(self, psn: int, packets: Packets) -> Iterator[Written]:
        """Yield the writes of consecutive new packets, the first with the absolute ``psn``."""
        start = 0
        while start < len(packets) and not self.invalid:
            end = packets.opcodes.find(_LAST, start)
            stop = len(packets) if end < 0 else end + 1
            if end >= 0:
                heappush(self._ends, psn + end)
            size = sum(packets.sizes[start:stop])
            if self._sound(packets, start, stop, ends=end >= 0):
                self.bytes_ += size
                yield Written(packets.addresses[start], packets.words[start:stop], size)
            start = stop

    def on_expected(self, expected: int) -> None:
        """Complete the messages that are there below ``expected`` with all before them."""
        while self._ends and self._ends[0] < expected:
            heappop(self._ends)
            self.messages += 1

    def _sound(self, packets: Packets, start: int, stop: int, *, ends: bool) -> bool:
        """Return True if packets of one message have consecutive addresses, and full payloads except the last."""
        full = stop - start - ends
        middles = packets.opcodes[start : stop - ends]
        apart = packets.addresses[stop - 1] - packets.addresses[start]
        right = (
            middles.count(_MIDDLE) == full
            and packets.sizes[start : start + full].count(self._path_mtu) == full
            and packets.sizes[stop - 1] <= self._path_mtu
            and apart == (stop - start - 1) * self._path_mtu
        )
        self.invalid = self.invalid or not right
        return right
