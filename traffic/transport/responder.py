"""The receiving end of a reliable connection. PURE: no sockets, time is an argument (ns).

IBTA vol. 1, 9.7.5.1 and 9.7.6.1. It handles runs: consecutive packets that arrived together cost as much as one.
"""

from __future__ import annotations

from typing import NamedTuple

from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.counters import ResponderCounters
from hpn.traffic.transport.ranges import Ranges, absolute
from hpn.traffic.transport.work import Recovery, Transport


class Reply(NamedTuple):
    """Reply of a responder: an acknowledgement of all up to ``psn``, or a NAK that misses ``psn`` (both absolute).

    The PSN of a first acknowledgement may be one below the connection's first, as low as -1.
    """

    psn: int
    nak: bool


class Taken(NamedTuple):
    """Result of receiving a run of packets.

    ``accepted``: (offset in the run, count) of those that are new and stored. ``first_psn``: absolute PSN of the run's
    first packet. ``expected``: absolute PSN below which everything has arrived and may be delivered. ``replies``: due
    at once.
    """

    accepted: tuple[tuple[int, int], ...]
    first_psn: int
    expected: int
    replies: tuple[Reply, ...]


class Responder:
    """Responder state: packets received, the next expected PSN, and the acknowledgement owed."""

    def __init__(self, transport: Transport, acks: AckPolicy, first_psn: int = 0) -> None:
        self._acks = acks
        # Go-back-N stores nothing after a gap, as it is retransmitted. Selective repeat stores the other end's window.
        self._room = transport.window_packets if transport.recovery is Recovery.SELECTIVE_REPEAT else 0
        self._tolerated = transport.reorder_packets
        self.expected = first_psn  # absolute
        self._kept = Ranges()  # beyond a gap
        self._told = first_psn  # everything missing below was NAKed
        self._owed = 0  # packets in order and not yet acknowledged
        self._since_ns = 0  # arrival of the first of them
        self._packets = self._out_of_sequence = self._duplicates = self._naks = 0

    @property
    def counters(self) -> ResponderCounters:
        """Counters so far."""
        return ResponderCounters(self._packets, self._out_of_sequence, self._duplicates, self._naks)

    def on_run(self, psn24: int, count: int, ack_requested: bool, now_ns: int) -> Taken:
        """Handle ``count`` consecutive packets, the first with ``psn24``; ``ack_requested`` by any of them."""
        start = absolute(psn24, self.expected)
        self._packets += count
        if start > self.expected:
            return self._beyond_a_gap(start, start + count)
        late = min(self.expected - start, count)
        self._duplicates += late
        if late == count:
            return Taken((), start, self.expected, (self._acknowledge(),))
        accepted = self._in_order(start + late, start + count, now_ns)
        filled = self.expected > start + count
        offsets = tuple([(low - start, high - low) for low, high in accepted])
        due = ack_requested or late or filled or self._owed >= self._acks.packets
        return Taken(offsets, start, self.expected, (self._acknowledge(),) if due else ())

    def on_timer(self, now_ns: int) -> Reply | None:
        """Return the acknowledgement whose delay is over, or None."""
        deadline = self.deadline_ns()
        return None if deadline is None or now_ns < deadline else self._acknowledge()

    def deadline_ns(self) -> int | None:
        """Return the time at which a delayed acknowledgement is due; None when none is owed."""
        return self._since_ns + self._acks.delay_ns if self._owed else None

    def _in_order(self, start: int, stop: int, now_ns: int) -> list[tuple[int, int]]:
        """Take the expected packet and its successors; return the new ones. Stored packets right after them are in
        order too."""
        accepted = [(start, stop)]
        self.expected = stop
        if self._kept.parts and self._kept.parts[0][0] <= stop:
            accepted = self._kept.add(start, stop)
            self._duplicates += stop - start - sum(high - low for low, high in accepted)
            self.expected = self._kept.parts[0][1]
            self._kept.trim(self.expected)
        self._told = max(self._told, self.expected)
        if not self._owed:
            self._since_ns = now_ns
        self._owed += self.expected - start
        return accepted

    def _beyond_a_gap(self, start: int, stop: int) -> Taken:
        """Take packets after a gap: store as many as there is room for, and NAK missing packets once."""
        self._out_of_sequence += stop - start
        missing, accepted = self._keep(start, stop) if self._room else (self._miss(), [])
        self._naks += len(missing)
        replies = tuple(Reply(psn, nak=True) for psn in missing)
        return Taken(tuple((low - start, high - low) for low, high in accepted), start, self.expected, replies)

    def _miss(self) -> list[int]:
        """Go-back-N: return the expected packet as missing. The NAK acknowledges everything before it."""
        missing = list(range(self._told, self.expected + 1))
        self._told = self.expected + 1
        self._owed = 0
        return missing

    def _keep(self, start: int, stop: int) -> tuple[list[int], list[tuple[int, int]]]:
        """Selective repeat: return the packets that now count as missing, and the parts that were not stored yet."""
        stop = min(stop, self.expected + self._room)
        if start >= stop:
            return [], []
        accepted = self._kept.add(start, stop)
        due = stop - 1 - self._tolerated
        missing = [psn for low, high in self._kept.gaps(self._told, due) for psn in range(low, high)]
        self._told = max(self._told, due)
        again = stop - start - sum(high - low for low, high in accepted)
        self._duplicates += again
        self._out_of_sequence -= again
        return missing, accepted

    def _acknowledge(self) -> Reply:
        self._owed = 0
        return Reply(self.expected - 1, nak=False)
