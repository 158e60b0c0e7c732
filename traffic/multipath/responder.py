"""The receiving end of a multipath queue pair: which packets are there, and what is acknowledged. PURE.

Packets may come in any order, and each is taken once. An acknowledgement says what is there, and the sender finds what
is not. The one NAK is that of a packet which a switch trimmed. Time is an argument (ns).
"""

from __future__ import annotations

from collections.abc import Iterable

from hpn.traffic.multipath.sack import MOST_MARKED, Sack
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.counters import ResponderCounters
from hpn.traffic.transport.ranges import Ranges, absolute
from hpn.traffic.transport.work import Transport


class MultipathResponder:
    """Responder state: packets received, and the acknowledgement owed."""

    def __init__(self, transport: Transport, acks: AckPolicy, first_psn: int = 0) -> None:
        self._acks = acks
        self._room = transport.window_packets
        self.expected = first_psn  # absolute
        self._kept = Ranges()  # beyond a gap
        self._owed = 0  # packets not yet acknowledged
        self._since_ns = 0  # arrival of the first of them
        self._newest, self._value, self._newest_ns = first_psn - 1, 0, 0
        self._marked: dict[int, None] = {}  # values of marked packets since the last acknowledgement
        self._packets = self._out_of_sequence = self._duplicates = 0

    @property
    def counters(self) -> ResponderCounters:
        """Counters so far."""
        return ResponderCounters(self._packets, self._out_of_sequence, self._duplicates, 0)

    @property
    def value(self) -> int:
        """Entropy value of the newest packet."""
        return self._value

    @property
    def newest(self) -> int:
        """Absolute PSN of the newest packet."""
        return self._newest

    def on_run(self, psn24: int, count: int, value: int, now_ns: int) -> list[tuple[int, int]]:
        """Handle ``count`` consecutive packets, the last of which came by ``value``; return the new ones (absolute).

        Packets beyond the window are dropped. A duplicate makes an acknowledgement due at once.
        """
        start = absolute(psn24, self.expected)
        self._newest, self._value, self._newest_ns = start + count - 1, value, now_ns
        self._packets += count
        if not self._owed:
            self._since_ns = now_ns
        self._owed += count
        low, high = max(start, self.expected), min(start + count, self.expected + self._room)
        new = self._kept.add(low, high) if low < high else []
        again = count - sum(stop - begin for begin, stop in new)
        if again:
            self._duplicates += again
            self._owed += self._acks.packets
        if low > self.expected:
            self._out_of_sequence += high - low
        elif self._kept.parts and self._kept.parts[0][0] <= self.expected:
            self.expected = self._kept.parts[0][1]
            self._kept.trim(self.expected)
        return new

    def on_marked(self, values: Iterable[int]) -> None:
        """Handle packets that came with a congestion mark by these values."""
        for value in values:
            self._marked[value] = None

    def due(self, asked: bool) -> bool:
        """Return True if an acknowledgement is due now; ``asked``: a packet requested it."""
        return self._owed > 0 and (asked or self._owed >= self._acks.packets or len(self._marked) >= MOST_MARKED)

    def deadline_ns(self) -> int | None:
        """Return the time at which a delayed acknowledgement is due; None when none is owed."""
        return self._since_ns + self._acks.delay_ns if self._owed else None

    def acknowledge(self, now_ns: int | None = None) -> Sack:
        """Return the acknowledgement of all that is there; ``now_ns`` if it was delayed."""
        self._owed = 0
        waited_ns = 0 if now_ns is None else now_ns - self._newest_ns
        marked, self._marked = tuple(self._marked), {}
        return Sack(self.expected - 1, self._newest, self._value, False, marked, self._bitmap(), waited_ns=waited_ns)

    def answer(self, psn24: int, value: int) -> Sack:
        """Return the answer to a probe that came by ``value``; it acknowledges too."""
        return self.acknowledge()._replace(newest=psn24, value=value, probe=True)

    def on_trimmed(self, psn24: int, value: int) -> Sack:
        """Return the news of a packet that came by ``value`` without its payload; it acknowledges too."""
        return self.acknowledge()._replace(newest=psn24, value=value, trimmed=True)

    def _bitmap(self) -> bytes:
        bits = 0
        for start, stop in self._kept.parts:
            bits |= (1 << stop - start) - 1 << start - self.expected - 1
        return bits.to_bytes(-(-bits.bit_length() // 8), "little")
