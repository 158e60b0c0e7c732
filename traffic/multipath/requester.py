"""The sending end of a multipath queue pair. PURE: no sockets, time is an argument (CLOCK_MONOTONIC, ns).

A packet counts as lost when a packet that left later by the *same* path has arrived; order among paths says nothing. It
also does when a round trip, and what round trips vary by, has passed without a word of it. Its path is denied at once,
and it goes again by another one. A trimmed packet goes again too, but its path is only congested. The retry timer of
the queue pair runs beneath: without any arrival it ends the queue pair after the same time as a reliable connection's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hpn.traffic.multipath.denials import Loss
from hpn.traffic.multipath.in_flight import InFlight
from hpn.traffic.multipath.paths import Paths
from hpn.traffic.multipath.round_trips import MOST_EXPIRIES, RoundTrips
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.postings import Postings
from hpn.traffic.transport.ranges import absolute
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.work import Completion, Status, Transport

_FLIGHT, _LOST, _ARRIVED = 1, 2, 3

Places = npt.NDArray[np.intp]


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
        size = 1 << (transport.window_packets - 1).bit_length()
        self._mask = size - 1
        # Of each packet of the window, by its PSN: its last path, its place among all that was sent, and its copies.
        self._path, self._serial = np.zeros(size, np.intp), np.zeros(size, np.int64)
        self._sent_ns, self._status = np.zeros(size, np.int64), np.zeros(size, np.uint8)
        self._copies, self._rtt_ns = np.zeros(size, np.int64), np.zeros(size, np.int64)  # as known when it was sent
        self._serials = 0  # packets sent in all
        self._lost = 0  # packets that wait to be sent again
        self._flying = InFlight(size)
        self._heard: npt.NDArray[np.int64] = np.zeros(0, np.int64)  # by path: serial of the last packet that arrived
        self._by_value: dict[int, int] = {}
        self._expiries = np.zeros(size, np.uint8)  # of each packet, as ``RoundTrips`` had them when it left
        self._oldest_ns: dict[int, int] = {}  # by these: when the oldest packet in flight was sent
        self._timer_ns = 0  # begin of the present try
        self._tries = 0  # expiries since anything arrived
        self._wait_ns = transport.timer.wait_ns(0)

    def set_values(self, values: Sequence[EntropyValue]) -> None:
        """Use these entropy values, path by path, from now on."""
        if len(values) != len(self._heard):
            self._heard = np.full(len(values), -1, np.int64)
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
        return bool(self._lost) or self._sent < self._limit()

    def take(self, port: int, most_packets: int, now_ns: int) -> list[Run]:
        """Return the runs to send now by that port, at most ``most_packets``: first what was lost, then new packets.

        What was lost by this port waits for another one that carries, and that has lost nothing since its last arrival
        if there is such a port.
        """
        runs: list[Run] = []
        most_packets = self.room(port, most_packets)
        if most_packets <= 0 or not self.paths.carries(port) or self.state is not QpState.READY:
            return runs
        if self._flying.total == 0:
            self._oldest_ns.clear()
            if self._sent == self._acknowledged:
                self._timer_ns = now_ns
        if self._lost:
            for start, stop in list(self._lost_runs(port, most_packets)):
                runs.append(self._run(start, stop, port, now_ns, again=True))
            again = sum(run.count for run in runs)
            self._packets_again += again
            self._lost -= again
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
        slots, new = self._arrivals(sack, acknowledged)
        if not len(new):
            return Heard(trimmed=trimmed)
        rtt_ns = None if sack.probe else self._round_trip(newest, path, new, now_ns)
        self._took(new, slots, now_ns)
        self._alive(now_ns)
        self._acknowledged = max(self._acknowledged, acknowledged)
        net_ns = None if rtt_ns is None else rtt_ns - sack.waited_ns
        return Heard(self._completed(now_ns), len(new), net_ns, len(marked), trimmed)

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
            slots = self._window()
            patience_ns = np.array([self._trips.patience_ns(expiries) for expiries in range(MOST_EXPIRIES + 1)])
            late = self._sent_ns[slots] + patience_ns[self._expiries[slots]] <= now_ns
            lost = slots[late & (self._status[slots] == _FLIGHT)]
            self._trips.on_expiry(int(self._expiries[lost].max()))
            self._lose(lost, now_ns)
            self._look_for_oldest(slots)
        return [], self.paths.on_timer(now_ns)

    def _on_trimmed(self, psn: int, path: int, now_ns: int) -> bool:
        """Send a packet again that came without its payload by its last path; return False if this is old news.

        It says nothing of packets before it: a switch lets trimmed ones overtake.
        """
        slot = psn & self._mask
        known = self._acknowledged <= psn < self._sent and self._status[slot] == _FLIGHT and self._path[slot] == path
        if not known:
            return False
        self._status[slot] = _LOST
        self._lost += 1
        self._flying.landed(np.array([slot]))
        self._look_for_oldest(self._window())
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

    def _arrivals(self, sack: Sack, acknowledged: int) -> tuple[Places, Places]:
        """Return the slots of the window, and of those packets that the acknowledgement is the first to report."""
        slots, first = self._window(), self._acknowledged
        there = np.zeros(len(slots), np.bool_)
        there[: max(acknowledged - first, 0)] = True
        if sack.bitmap:
            bits = np.unpackbits(np.frombuffer(sack.bitmap, np.uint8), bitorder="little").nonzero()[0]
            at = bits + (acknowledged + 1 - first)
            there[at[(at >= 0) & (at < len(slots))]] = True
        found: Places = slots[there & (self._status[slots] != _ARRIVED)]
        return slots, found

    def _round_trip(self, newest: int, path: int | None, new: Places, now_ns: int) -> int | None:
        """Return the round trip of the newest packet, if it is new and came by the path that it was last sent by."""
        slot = newest & self._mask
        if path is None or slot not in new or self._path[slot] != path:
            return None
        self._heard[path] = max(self._heard[path], self._serial[slot])
        rtt_ns = now_ns - int(self._sent_ns[slot])
        self._trips.on_round_trip(rtt_ns)
        return rtt_ns

    def _took(self, new: Places, slots: Places, now_ns: int) -> None:
        """Note arrivals, and what is lost as later packets of its path have arrived."""
        sure = new[self._copies[new] == 1]  # which copy of another has arrived is not known
        paths = self._path[sure]
        np.maximum.at(self._heard, paths, self._serial[sure])
        if self.paths.troubled:
            self.paths.on_arrived(set(paths.tolist()))
        flew = new[self._status[new] == _FLIGHT]
        self._lost -= len(new) - len(flew)
        self._flying.landed(flew)
        self._status[new] = _ARRIVED
        overtaken = (self._status[slots] == _FLIGHT) & (self._serial[slots] < self._heard[self._path[slots]])
        if overtaken.any():
            self._lose(slots[overtaken], now_ns)
        self._look_for_oldest(slots)

    def _lose(self, slots: Places, now_ns: int) -> None:
        self._status[slots] = _LOST
        self._lost += len(slots)
        self._flying.landed(slots)
        in_order = slots[np.argsort(self._serial[slots])]
        paths, first = np.unique(self._path[in_order], return_index=True)
        firsts = in_order[first]
        known = zip(paths.tolist(), self._sent_ns[firsts].tolist(), self._rtt_ns[firsts].tolist(), strict=True)
        self.paths.on_lost(map(Loss._make, known), now_ns)

    def _look_for_oldest(self, slots: Places) -> None:
        self._oldest_ns.clear()
        if self._flying.total:
            flying = slots[self._status[slots] == _FLIGHT]
            for expiries in np.unique(self._expiries[flying]).tolist():
                self._oldest_ns[expiries] = int(self._sent_ns[flying[self._expiries[flying] == expiries]].min())

    def _expiries_ns(self) -> list[int]:
        """Return when the oldest packets in flight count as lost."""
        patience_ns = self._trips.patience_ns
        return [since_ns + patience_ns(expiries) for expiries, since_ns in self._oldest_ns.items()]

    def _window(self) -> Places:
        """Return the slots of all packets that are sent and not acknowledged up to, in order."""
        return np.arange(self._acknowledged, self._sent) & self._mask

    def _lost_runs(self, port: int, most: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of lost packets that may go by that port, at most ``most`` in all."""
        psns = self._acknowledged + (self._status[self._window()] == _LOST).nonzero()[0]
        if self.paths.carrying_ports > 1:
            left_by = [self.paths.port(path) for path in self._path[psns & self._mask].tolist()]
            psns = psns[np.array([self._may_follow(port, left) for left in left_by], np.bool_)]
        psns = psns[:most]
        if not len(psns):
            return
        starts = np.flatnonzero(np.diff(psns, prepend=psns[0] - 2) != 1).tolist()
        for first, end in zip(starts, [*starts[1:], len(psns)], strict=True):
            at, stop = int(psns[first]), int(psns[end - 1]) + 1
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
        slots = np.arange(start, stop) & self._mask
        paths = self.paths.take(port, count)
        self._path[slots], self._sent_ns[slots], self._status[slots] = paths, now_ns, _FLIGHT
        self._serial[slots] = np.arange(self._serials, self._serials + count)
        self._copies[slots] = self._copies[slots] + 1 if again else 1
        self._rtt_ns[slots], self._expiries[slots] = self._trips.smooth_ns, self._trips.expiries
        self._oldest_ns.setdefault(self._trips.expiries, now_ns)
        self._serials += count
        asks = self._flying.left(slots, port)
        last = again or asks or stop == self._acknowledged + self._transport.window_packets
        return Run(message.request, start - message.start, count, start, again, last, paths)

    def _try(self, tries: int) -> None:
        """Set the number of expiries since anything arrived."""
        self._tries = tries
        self._wait_ns = self._transport.timer.wait_ns(tries)

    def _end(self, status: Status, now_ns: int) -> list[Completion]:
        self._lost = 0
        self._flying.clear()
        self._oldest_ns.clear()
        return super()._end(status, now_ns)
