"""The receiving end of a reliable connection: what is kept, what is said. PURE: no sockets, time is an argument (ns).

IBTA vol. 1, 9.7.5.1 and 9.7.6.1. It sees runs: consecutive packets that arrived together cost as much as one.
"""

from __future__ import annotations

from typing import NamedTuple

from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.counters import ResponderCounters
from hpn.traffic.transport.ranges import Ranges, absolute
from hpn.traffic.transport.work import Recovery, Transport


class Reply(NamedTuple):
    """What is sent back: an acknowledgement of all up to ``psn``, or a NAK that misses ``psn`` (both absolute).

    The PSN of a first acknowledgement may be one below the connection's first, as low as -1.
    """

    psn: int
    nak: bool


class Taken(NamedTuple):
    """What became of a run of packets.

    ``accepted``: (offset in the run, count) of those that are new and kept; ``first_psn``: absolute, of the run's first
    packet; ``expected``: absolute, all below is there and may be delivered; ``replies``: due at once.
    """

    accepted: tuple[tuple[int, int], ...]
    first_psn: int
    expected: int
    replies: tuple[Reply, ...]


class Responder:
    """Which packets are there, which is expected next, and which acknowledgement is owed."""

    def __init__(self, transport: Transport, acks: AckPolicy, first_psn: int = 0) -> None:
        self._acks = acks
        # Behind a gap go-back-N keeps nothing: it is all sent again. Otherwise what the other end's window can bring.
        self._room = transport.window_packets if transport.recovery is Recovery.SELECTIVE_REPEAT else 0
        self._tolerated = transport.reorder_packets
        self.expected = first_psn  # absolute
        self._kept = Ranges()  # beyond a gap
        self._told = first_psn  # what is missing below was told by a NAK
        self._owed = 0  # packets in order and not yet acknowledged
        self._since_ns = 0  # arrival of the first of them
        self._packets = self._out_of_sequence = self._duplicates = self._naks = 0

    @property
    def counters(self) -> ResponderCounters:
        """What was counted so far."""
        return ResponderCounters(self._packets, self._out_of_sequence, self._duplicates, self._naks)

    def on_run(self, psn24: int, count: int, ack_requested: bool, now_ns: int) -> Taken:
        """``count`` consecutive packets arrived together, the first with ``psn24``; one may ask for an answer."""
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
        """The acknowledgement whose delay is over, if any."""
        deadline = self.deadline_ns()
        return None if deadline is None or now_ns < deadline else self._acknowledge()

    def deadline_ns(self) -> int | None:
        """When an acknowledgement is due that nothing else brings about; None when none is owed."""
        return self._since_ns + self._acks.delay_ns if self._owed else None

    def _in_order(self, start: int, stop: int, now_ns: int) -> list[tuple[int, int]]:
        """The expected packet and those behind it: what of them is new. All kept right behind is in order too."""
        accepted = [(start, stop)]
        self.expected = stop
        if self._kept and self._kept.first[0] <= stop:
            accepted = self._kept.add(start, stop)
            self._duplicates += stop - start - sum(high - low for low, high in accepted)
            self.expected = self._kept.first[1]
            self._kept.trim(self.expected)
        self._told = max(self._told, self.expected)
        if not self._owed:
            self._since_ns = now_ns
        self._owed += self.expected - start
        return accepted

    def _beyond_a_gap(self, start: int, stop: int) -> Taken:
        """Packets behind one that is missing: kept is what there is room for, and what is missing is told once."""
        self._out_of_sequence += stop - start
        missing, accepted = self._keep(start, stop) if self._room else (self._miss(), [])
        self._naks += len(missing)
        replies = tuple(Reply(psn, nak=True) for psn in missing)
        return Taken(tuple((low - start, high - low) for low, high in accepted), start, self.expected, replies)

    def _miss(self) -> list[int]:
        """Go-back-N: the expected packet is missing. The NAK acknowledges all before it."""
        missing = list(range(self._told, self.expected + 1))
        self._told = self.expected + 1
        self._owed = 0
        return missing

    def _keep(self, start: int, stop: int) -> tuple[list[int], list[tuple[int, int]]]:
        """Selective repeat: the packets that now count as missing, and what was not kept already."""
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
