"""The sending end of a reliable connection. PURE: no sockets, time is an argument (CLOCK_MONOTONIC, ns).

IBTA vol. 1, 9.7.5 and 9.7.6. A message costs the same whatever its size: packets exist as runs of PSNs only.

The retry timer runs from the last send of the oldest unacknowledged packet, or from the last progress. While that
packet waits for its retransmission (a paced sender sends it later), no try has begun and the timer stands still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.postings import Postings
from hpn.traffic.transport.ranges import Ranges, absolute
from hpn.traffic.transport.recovery import gaps
from hpn.traffic.transport.work import Completion, Status, Transport, WorkRequest


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive packets of one message that are to be sent now.

    ``first`` is the index of the first in its message; ``psn`` is its absolute number (the wire carries ``psn &
    0xFFFFFF``). ``again``: they are retransmissions. ``ack_last``: the last packet requests an acknowledgement even out
    of turn, because no packet may follow: it is a retransmission, or fills the window. ``paths``: the path of each
    packet, if they take several.
    """

    request: WorkRequest
    first: int
    count: int
    psn: int
    again: bool
    ack_last: bool = False
    paths: Sequence[int] = ()

    def part(self, start: int, stop: int) -> Run:
        """Return the packets from ``start`` to before ``stop``."""
        if stop - start == self.count:
            return self
        last, paths = self.ack_last and stop == self.count, self.paths[start:stop]
        first, psn = self.first + start, self.psn + start
        return replace(self, first=first, psn=psn, count=stop - start, ack_last=last, paths=paths)


class Retry(NamedTuple):
    """A moment at which a queue pair began to retransmit. ``expiries`` of its timer in a row; 0: a NAK told."""

    at_ns: int
    expiries: int


class Requester(Postings):
    """Requester state: packets posted, sent and acknowledged, retransmissions, and ``retries`` so far."""

    def __init__(self, transport: Transport, first_psn: int = 0) -> None:
        super().__init__(transport, first_psn)
        self._again = Ranges()  # packets to retransmit
        self._timer_ns = 0  # begin of the present try
        self._tries = 0  # expiries since the last progress
        self._wait_ns = transport.timer.wait_ns(0)  # of the present try
        self._gaps = gaps(transport.recovery)
        self.retries: list[Retry] = []

    @property
    def sendable(self) -> bool:
        """True if a packet may be sent now."""
        return bool(self._again.parts) or self._sent < self._limit()

    def take(self, most_packets: int, now_ns: int) -> list[Run]:
        """Return the runs to send now, at most ``most_packets``: first retransmissions, then new packets."""
        runs: list[Run] = []
        while self._again.parts and most_packets > 0:
            start, stop = self._again.parts[0]
            runs.append(self._run(start, min(stop, start + most_packets), now_ns, again=True))
            most_packets -= runs[-1].count
            self._again.trim(start + runs[-1].count)
            self._packets_again += runs[-1].count
        limit = min(self._limit(), self._sent + most_packets)
        while self._sent < limit:
            runs.append(self._run(self._sent, limit, now_ns, again=False))
            self._sent += runs[-1].count
        self._packets += sum([run.count for run in runs])
        return runs

    def on_ack(self, psn24: int, now_ns: int) -> list[Completion]:
        """Handle an acknowledgement of everything up to ``psn24``; old ones, or of packets never sent, are ignored."""
        return self._progress(absolute(psn24 + 1, self._acknowledged), now_ns)

    def on_nak(self, psn24: int, now_ns: int) -> list[Completion]:
        """Handle a NAK: the other end misses ``psn24``.

        Go-back-N: it has everything before and needs this packet and everything after. Selective repeat: it needs this
        packet; other packets are unknown. The other end sends one NAK per packet, so a repeated NAK is a copy made by
        the network.
        """
        if self.state is not QpState.READY:
            return []
        self._naks += 1
        self.retries.append(Retry(now_ns, 0))
        missing = absolute(psn24, self._acknowledged)
        completions = self._progress(missing, now_ns) if self._gaps.nak_acknowledges else []
        if self._acknowledged <= missing < self._sent:
            self._gaps.on_nak(missing, self._sent, self._again)
        return completions

    def deadline_ns(self) -> int | None:
        """Return the time at which ``on_timer`` is due; None while no acknowledgement is awaited."""
        if self._acknowledged == self._sent or self.state is not QpState.READY:
            return None
        if self._again.parts and self._again.parts[0][0] == self._acknowledged:
            return None
        return self._timer_ns + self._wait_ns

    def on_timer(self, now_ns: int) -> list[Completion]:
        """Advance time: at the deadline, retransmit, or give up after the last retry.

        Then the queue pair errors: the oldest work request ends as retry exceeded and all others are flushed.
        """
        deadline = self.deadline_ns()
        if deadline is None or now_ns < deadline:
            return []
        if self._tries >= self._transport.timer.retries(self._transport.retry_count):
            return self._fail(Status.RETRY_EXCEEDED, now_ns)
        self._try(self._tries + 1)
        self._timeouts += 1
        self.retries.append(Retry(now_ns, self._tries))
        self._gaps.on_timeout(self._acknowledged, self._sent, self._again)
        return []

    def _run(self, start: int, stop: int, now_ns: int, again: bool) -> Run:
        """Return the packets from ``start`` to ``stop`` or their message's end; the timer starts when the oldest is
        sent."""
        message = self._message_of(start)
        stop = min(stop, message.stop)
        if start == self._acknowledged:
            self._timer_ns = now_ns
        last = again or stop == self._acknowledged + self._transport.window_packets
        return Run(message.request, start - message.start, stop - start, start, again, last)

    def _try(self, tries: int) -> None:
        """Set the number of expiries since the last progress."""
        self._tries = tries
        self._wait_ns = self._transport.timer.wait_ns(tries)

    def _progress(self, acknowledged: int, now_ns: int) -> list[Completion]:
        """Handle the arrival of everything below ``acknowledged``; return the completions it causes."""
        if self.state is not QpState.READY or not self._acknowledged < acknowledged <= self._sent:
            return []
        self._acknowledged = acknowledged
        self._timer_ns = now_ns
        if self._tries:
            self._try(0)
        if self._again.parts:
            self._again.trim(acknowledged)
        self._gaps.on_progress(acknowledged, self._again)
        return self._completed(now_ns)

    def _end(self, status: Status, now_ns: int) -> list[Completion]:
        """End all sending, retransmissions too."""
        self._again = Ranges()
        return super()._end(status, now_ns)
