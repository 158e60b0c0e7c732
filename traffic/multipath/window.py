"""Packets of a multipath queue pair from when they leave to when they are acknowledged. PURE, without numpy.

PSNs are absolute. The last copy of a packet belongs to a flight: packets that left together by one port of the NIC.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from hpn.traffic.multipath.denials import Loss

_FLIGHT, _LOST, _ARRIVED = 1, 2, 3


class Flight:
    """Packets from ``start`` to ``stop`` that left at ``sent_ns`` by ``port``, each by its path of ``paths``.

    ``serial``: place of the first among all that was sent. ``rtt_ns`` and ``expiries``: of ``RoundTrips`` at that time.
    ``again``: retransmissions. ``flying``: how many are under way. ``split``: some were sent again since.
    """

    __slots__ = (
        "again", "expiries", "flying", "paths", "port", "rtt_ns", "sent_ns", "serial", "split", "start", "states",
        "stop",
    )  # fmt: skip

    def __init__(
        self, start: int, paths: Sequence[int], port: int, sent_ns: int, rtt_ns: int, expiries: int, *, again: bool
    ) -> None:
        count = len(paths)
        self.start, self.stop, self.paths, self.port = start, start + count, paths, port
        self.sent_ns, self.rtt_ns, self.expiries, self.again = sent_ns, rtt_ns, expiries, again
        self.serial = 0
        self.flying = count
        self.states = bytearray([_FLIGHT]) * count
        self.split = False


class Copy(NamedTuple):
    """A packet as it was last sent; copies sort by when they left."""

    serial: int
    psn: int
    flight: Flight

    @property
    def path(self) -> int:
        """Path that it left by."""
        return self.flight.paths[self.psn - self.flight.start]


class Landed(NamedTuple):
    """Result of arrivals. ``by_port``: ports of packets that were under way, with their number, a port may repeat.

    ``paths``: of packets that were sent once. ``overtaken``: packets under way whose path has delivered a later one.
    """

    by_port: Sequence[tuple[int, int]]
    paths: Sequence[int]
    overtaken: Sequence[Copy]


class Window:
    """The packets that left and are not acknowledged up to; ``first`` is the lowest, ``lost`` wait to be sent again."""

    def __init__(self, packets: int, first_psn: int) -> None:
        size = 1 << (packets - 1).bit_length()
        self._mask = size - 1
        self._last: list[Flight | None] = [None] * size  # by PSN: the flight of its last copy
        self.first = first_psn
        self.lost: set[int] = set()
        self.given_up: dict[tuple[int, int], int] = {}  # by PSN and path: when what counted as lost of late had left
        self._arrived = 0  # a bit for each packet from ``first`` on
        self._serials = 0  # packets sent in all
        self._heard: list[int] = []  # by path: serial of the last packet that arrived
        self._left_by: list[deque[tuple[int, int]]] = []  # by path: serial and PSN of what left later
        self._flights: dict[int, deque[Flight]] = {}  # by expiries, in the order of leaving

    def set_paths(self, count: int) -> None:
        """Have so many paths; another number than before forgets what arrived by them."""
        if count != len(self._heard):
            self._heard = [-1] * count
            self._left_by = [deque() for _ in range(count)]

    def send(self, flight: Flight) -> None:
        """Note packets that leave."""
        start, stop = flight.start, flight.stop
        flight.serial = self._serials
        self._serials += stop - start
        if flight.again:
            self.lost.difference_update(range(start, stop))
            for psn in range(start, stop):
                self._flight(psn).split = True
        at, end = start & self._mask, (stop - 1 & self._mask) + 1
        if at < end:
            self._last[at:end] = [flight] * (end - at)
        else:
            size = self._mask + 1
            self._last[at:], self._last[:end] = [flight] * (size - at), [flight] * end
        copies = zip(range(flight.serial, self._serials), range(start, stop), strict=True)
        for path, copy in zip(flight.paths, copies, strict=True):
            self._left_by[path].append(copy)
        self._flights.setdefault(flight.expiries, deque()).append(flight)

    def new(self, acknowledged: int, bitmap: bytes, sent: int) -> int:
        """Return the packets that an acknowledgement is the first to report, a bit for each from ``first`` on.

        It reports all before ``acknowledged``, and behind the next one those in ``bitmap``.
        """
        before = acknowledged - self.first
        there = int.from_bytes(bitmap, "little")
        there = there << before + 1 if before >= -1 else there >> -before - 1
        if before > 0:
            there |= (1 << before) - 1
        return there & ~self._arrived & (1 << sent - self.first) - 1

    def copy(self, psn: int) -> Copy:
        """Return the last copy of a packet."""
        flight = self._flight(psn)
        return Copy(flight.serial + psn - flight.start, psn, flight)

    def flies(self, copy: Copy) -> bool:
        """Return True if a packet is under way."""
        return copy.flight.states[copy.psn - copy.flight.start] == _FLIGHT

    def land(self, new: int, newest: Copy | None) -> Landed:
        """Note that packets arrived; ``newest``: the last copy of one of them is known to have."""
        heard, touched = self._heard, dict[int, None]()
        if newest is not None and newest.serial > heard[newest.path]:
            heard[newest.path] = newest.serial
            touched[newest.path] = None
        by_port: list[tuple[int, int]] = []
        sure: list[int] = []
        for flight, begin, end in self._parts(new):
            flew = flight.states.count(_FLIGHT, begin, end)
            if flew:
                flight.flying -= flew
                by_port.append((flight.port, flew))
            if flew < end - begin:
                self.lost.difference_update(range(flight.start + begin, flight.start + end))
            flight.states[begin:end] = bytes([_ARRIVED]) * (end - begin)
            if not flight.again:  # else it is not known which copy has arrived
                paths = flight.paths[begin:end]
                sure += paths
                for serial, path in enumerate(paths, flight.serial + begin):
                    if heard[path] < serial:
                        heard[path] = serial
                        touched[path] = None
        self._arrived |= new
        return Landed(by_port, sure, list(self._overtaken(touched)))

    def advance(self, acknowledged: int) -> None:
        """Forget the packets before ``acknowledged``, which have all arrived."""
        self._arrived >>= acknowledged - self.first
        self.first = acknowledged

    def lose(self, copies: Iterable[Copy]) -> Sequence[Loss]:
        """Note that packets under way are lost; return the first of each path, in the order of paths."""
        firsts: dict[int, Loss] = {}
        for copy in sorted(copies):
            flight = copy.flight
            flight.states[copy.psn - flight.start] = _LOST
            flight.flying -= 1
            self.lost.add(copy.psn)
            self.given_up[copy.psn, copy.path] = flight.sent_ns
            firsts.setdefault(copy.path, Loss(copy.path, flight.sent_ns, flight.rtt_ns))
        while len(self.given_up) > self._mask:
            del self.given_up[next(iter(self.given_up))]
        return [firsts[path] for path in sorted(firsts)]

    def oldest_ns(self) -> Iterator[tuple[int, int]]:
        """Yield expiries, and when the oldest packet under way with that number left."""
        for expiries, flights in self._flights.items():
            while flights and not flights[0].flying:
                flights.popleft()
            if flights:
                yield expiries, flights[0].sent_ns

    def late(self, now_ns: int, patience_ns: Callable[[int], int]) -> list[Copy]:
        """Return the packets under way that left longer ago than their patience."""
        return [
            Copy(flight.serial + at, flight.start + at, flight)
            for expiries, flights in self._flights.items()
            for flight in flights
            if flight.flying and flight.sent_ns + patience_ns(expiries) <= now_ns
            for at, state in enumerate(flight.states)
            if state == _FLIGHT
        ]

    def clear(self) -> None:
        """Note that nothing is under way or lost any more."""
        self.lost.clear()
        self.given_up.clear()
        self._flights.clear()

    def _flight(self, psn: int) -> Flight:
        """Return the flight of a packet's last copy. KeyError if there is none."""
        flight = self._last[psn & self._mask]
        if flight is None or not flight.start <= psn < flight.stop:
            raise KeyError(psn)
        return flight

    def _parts(self, bits: int) -> Iterator[tuple[Flight, int, int]]:
        """Yield the packets of these bits as parts of flights: begin and end within each."""
        psn = self.first
        while bits:
            skipped = (bits & -bits).bit_length() - 1
            bits >>= skipped
            psn += skipped
            count = (~bits & bits + 1).bit_length() - 1
            bits >>= count
            stop = psn + count
            while psn < stop:
                flight = self._flight(psn)
                until = psn + 1 if flight.split else min(stop, flight.stop)
                yield flight, psn - flight.start, until - flight.start
                psn = until

    def _overtaken(self, paths: Iterable[int]) -> Iterator[Copy]:
        """Yield the packets under way that left by one of these paths before the last one that arrived by it."""
        for path in paths:
            left, heard = self._left_by[path], self._heard[path]
            while left and left[0][0] <= heard:
                serial, psn = left.popleft()
                if serial == heard:
                    break
                flight = self._last[psn & self._mask]
                if flight is None or psn - flight.start != serial - flight.serial:
                    continue  # another copy left since
                if flight.start <= psn < flight.stop and flight.states[psn - flight.start] == _FLIGHT:
                    yield Copy(serial, psn, flight)
