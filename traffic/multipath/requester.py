"""The sending end of a multipath queue pair. PURE: no sockets, time is an argument (CLOCK_MONOTONIC, ns).

A packet counts as lost when a packet that left later by the *same* path has arrived; order among paths says nothing. It
also does when a round trip, and what round trips vary by, has passed without a word of it. Its path is denied at once,
and it goes again by another one. A trimmed packet goes again too, but its path is only congested. The retry timer of
the queue pair runs beneath: without any arrival it ends the queue pair after the same time as a reliable connection's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hpn.traffic.multipath.in_flight import InFlight
from hpn.traffic.multipath.paths import Paths
from hpn.traffic.multipath.round_trips import RoundTrips
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.multipath.window import Copy, Flight, Window
from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.postings import Postings
from hpn.traffic.transport.ranges import Ranges, absolute
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.work import Completion, Status, Transport


class Heard(NamedTuple):
    """Result of an acknowledgement: completions, packets that it is the first to report, and their round trip.

    ``rtt_ns``: without the receiver's wait. ``marked``: paths on which a packet was marked. ``trimmed``: the newest
    packet came without its payload, and goes again.
    """

    completions: Sequence[Completion] = ()
    packets: int = 0
    rtt_ns: int | None = None
    marked: int = 0
    trimmed: bool = False


class MultipathRequester(Postings):
    """Requester state; ``trips`` knows how long a round trip may take."""

    def __init__(self, transport: Transport, paths: Paths, trips: RoundTrips, first_psn: int = 0) -> None:
        super().__init__(transport, first_psn)
        self.paths = paths
        self._trips = trips
        self._window = Window(transport.window_packets, first_psn)
        self._flying = InFlight()
        self._by_value: dict[int, int] = {}
        self._timer_ns = 0  # begin of the present try
        self._tries = 0  # expiries since anything arrived
        self._wait_ns = transport.timer.wait_ns(0)

    def set_values(self, values: Sequence[EntropyValue]) -> None:
        """Use these entropy values, path by path, from now on."""
        self._window.set_paths(len(values))
        self._by_value = {value.sport: path for path, value in enumerate(values)}
        self.paths.move([value.port for value in values])

    def set_window(self, packets: int) -> None:
        """Have at most so many packets under way from now on, as congestion control wants it."""
        self._flying.set_window(packets)

    def room(self, port: int, most_packets: int = 1) -> int:
        """Return how many packets may leave by that port now, of ``most_packets``, by the congestion window."""
        return self._flying.room(port, max(self.paths.carrying_ports, 1), most_packets)

    @property
    def sendable(self) -> bool:
        """True if a packet waits and the window allows it."""
        return bool(self._window.lost) or self._sent < self._limit()

    def take(self, port: int, most_packets: int, now_ns: int) -> list[Run]:
        """Return the runs to send now by that port, at most ``most_packets``: first what was lost, then new packets.

        What was lost by this port waits for another one that carries, and that has lost nothing since its last arrival
        if there is such a port.
        """
        runs: list[Run] = []
        most_packets = self.room(port, most_packets)
        if most_packets <= 0 or not self.paths.carries(port) or self.state is not QpState.READY:
            return runs
        if self._flying.total == 0 and self._sent == self._acknowledged:
            self._timer_ns = now_ns
        if self._window.lost:
            for start, stop in list(self._lost_runs(port, most_packets)):
                runs.append(self._run(start, stop, port, now_ns, again=True))
            again = sum(run.count for run in runs)
            self._packets_again += again
            most_packets -= again
        limit = min(self._limit(), self._sent + most_packets)
        while self._sent < limit:
            runs.append(self._run(self._sent, limit, port, now_ns, again=False))
            self._sent += runs[-1].count
        self._packets += sum(run.count for run in runs)
        return runs

    def on_sack(self, sack: Sack, now_ns: int) -> Heard:
        """Handle an acknowledgement; PSNs of 24 bits. Old ones still say what is there."""
        if self.state is not QpState.READY:
            return Heard()
        path = self._by_value.get(sack.value)
        if sack.probe and path is not None:
            self.paths.on_answered(path)
        marked = [self._by_value[value] for value in sack.marked if value in self._by_value]
        for each in marked:
            self.paths.on_marked(each, now_ns)
        acknowledged = absolute(sack.psn + 1, self._acknowledged)
        if acknowledged > self._sent:
            return Heard()
        newest = absolute(sack.newest, self._acknowledged)
        trimmed = sack.trimmed and path is not None and self._on_trimmed(newest, path, now_ns)
        new = self._window.new(acknowledged, sack.bitmap, self._sent)
        if not new:
            if not sack.probe and not sack.trimmed and path is not None:
                self._came_late(newest, path, now_ns)
            return Heard(trimmed=trimmed)
        known = None if sack.probe else self._known(newest, path, new)
        rtt_ns = None
        if known is not None:
            rtt_ns = now_ns - known.flight.sent_ns
            self._trips.on_round_trip(rtt_ns)
        self._took(new, known, now_ns)
        self._alive(now_ns)
        if acknowledged > self._acknowledged:
            self._acknowledged = acknowledged
            self._window.advance(acknowledged)
        net_ns = None if rtt_ns is None else rtt_ns - sack.waited_ns
        return Heard(self._completed(now_ns), new.bit_count(), net_ns, len(marked), trimmed)

    def deadline_ns(self) -> int | None:
        """Return the time at which ``on_timer`` is due; None while nothing is awaited."""
        if self.state is not QpState.READY:
            return None
        due = [] if (waits := self.paths.next_ns()) is None else [waits]
        if self._acknowledged < self._sent:
            due.append(self._timer_ns + self._wait_ns)
        return min((*due, *self._expiries_ns()), default=None)

    def on_timer(self, now_ns: int) -> tuple[list[Completion], list[int]]:
        """Advance time; return completions, if the queue pair has given up, and the paths to probe now."""
        if self.state is not QpState.READY:
            return [], []
        if self._acknowledged < self._sent and now_ns >= self._timer_ns + self._wait_ns:
            if self._tries >= self._transport.timer.retries(self._transport.retry_count):
                return self._fail(Status.RETRY_EXCEEDED, now_ns), []
            self._try(self._tries + 1)
            self._timer_ns = now_ns
            self._timeouts += 1
        if any(due_ns <= now_ns for due_ns in self._expiries_ns()):
            late = self._window.late(now_ns, self._trips.patience_ns)
            self._trips.on_expiry(max(copy.flight.expiries for copy in late))
            self._lose(late, now_ns)
        return [], self.paths.on_timer(now_ns)

    def _on_trimmed(self, psn: int, path: int, now_ns: int) -> bool:
        """Send a packet again that came without its payload by its last path; return False if this is old news.

        It says nothing of packets before it: a switch lets trimmed ones overtake.
        """
        if not self._acknowledged <= psn < self._sent:
            return False
        copy = self._window.copy(psn)
        if copy.path != path or not self._window.flies(copy):
            return False
        self._window.lose((copy,))
        self._flying.landed(1, copy.flight.port)
        self._alive(now_ns)
        if self.paths.troubled:
            self.paths.on_arrived((path,))
        self.paths.on_marked(path, now_ns)
        return True

    def _alive(self, now_ns: int) -> None:
        """Note that the other end has received something: the retry timer begins again."""
        self._timer_ns = now_ns
        if self._tries:
            self._try(0)

    def _known(self, newest: int, path: int | None, new: int) -> Copy | None:
        """Return the newest packet if it is new and came by the path that it was last sent by."""
        if path is None or newest < self._acknowledged or not new >> newest - self._acknowledged & 1:
            return None
        copy = self._window.copy(newest)
        return copy if copy.path == path else None

    def _came_late(self, psn: int, path: int, now_ns: int) -> None:
        """Learn from a packet that arrived twice: if a copy by this path counted as lost, it was late."""
        sent_ns = self._window.given_up.pop((psn, path), None)
        if sent_ns is not None:
            self._trips.on_round_trip(now_ns - sent_ns)

    def _took(self, new: int, newest: Copy | None, now_ns: int) -> None:
        """Note arrivals, and what is lost as later packets of its path have arrived."""
        landed = self._window.land(new, newest)
        if self.paths.troubled:
            self.paths.on_arrived(set(landed.paths))
        for port, packets in landed.by_port:
            self._flying.landed(packets, port)
        if landed.overtaken:
            self._lose(landed.overtaken, now_ns)

    def _lose(self, copies: Sequence[Copy], now_ns: int) -> None:
        for copy in copies:
            self._flying.landed(1, copy.flight.port)
        self.paths.on_lost(self._window.lose(copies), now_ns)

    def _expiries_ns(self) -> list[int]:
        """Return when the oldest packets in flight count as lost."""
        patience_ns = self._trips.patience_ns
        return [since_ns + patience_ns(expiries) for expiries, since_ns in self._window.oldest_ns()]

    def _lost_runs(self, port: int, most: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of lost packets that may go by that port, at most ``most`` in all."""
        psns = sorted(self._window.lost)
        if self.paths.carrying_ports > 1:
            psns = [psn for psn in psns if self._may_follow(port, self.paths.port(self._window.copy(psn).path))]
        wanted = Ranges()
        for psn in psns[:most]:
            wanted.add(psn, psn + 1)
        for at, stop in wanted.parts:
            while at < stop:  # a run ends with its message
                until = min(stop, self._message_of(at).stop)
                yield at, until
                at = until

    def _may_follow(self, port: int, left: int) -> bool:
        """Return True if what was lost by port ``left`` may go again by ``port``: by a trusted one, if there is any."""
        others = self.paths.trusted_ports - {left}
        return port != left and (port in others or not others)

    def _run(self, start: int, stop: int, port: int, now_ns: int, *, again: bool) -> Run:
        """Send the packets from ``start`` to ``stop`` or their message's end, each by the next path of the port."""
        message = self._message_of(start)
        stop = min(stop, message.stop)
        count = stop - start
        paths = self.paths.take(port, count)
        trips = self._trips
        self._window.send(Flight(start, paths, port, now_ns, trips.smooth_ns, trips.expiries, again=again))
        asks = self._flying.left(count, port)
        last = again or asks or stop == self._acknowledged + self._transport.window_packets
        return Run(message.request, start - message.start, count, start, again, last, paths)

    def _try(self, tries: int) -> None:
        """Set the number of expiries since anything arrived."""
        self._tries = tries
        self._wait_ns = self._transport.timer.wait_ns(tries)

    def _end(self, status: Status, now_ns: int) -> list[Completion]:
        self._window.clear()
        self._flying.clear()
        return super()._end(status, now_ns)
