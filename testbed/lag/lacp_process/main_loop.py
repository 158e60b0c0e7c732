"""Main loop of the LACP process: its speakers, their packet sockets, their timers.

It does not use asyncio: timers due within ``GRAIN_NS`` run together, and all frames of a turn in a namespace are sent
by one system call. The ports of a namespace send their periodic LACPDUs together, and several namespaces do so at one
moment. So their partners too receive many frames per wake-up, and thousands of ports cost little at rest. Received
frames are processed at once.
"""

from __future__ import annotations

import heapq
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from hpn.testbed.events import Event, now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet import OnFrame
from hpn.testbed.lag.config import SECOND_NS
from hpn.testbed.lag.lacp_process import messages
from hpn.testbed.lag.lacp_process.messages import (
    Carrier,
    Freeze,
    Make,
    Message,
    Refuse,
    Settle,
    Settled,
    Start,
    Stop,
    Thaw,
)
from hpn.testbed.lag.lacp_process.slow_protocols import SlowProtocols
from hpn.testbed.lag.speaker import Speaker, SystemAt, Timer, Wire

GRAIN_NS = 10_000_000
"""Maximum delay of timers."""

BEATS = 8
"""Moments of each second at which namespaces send: fewer are cheaper, but each takes longer."""

_READ = 1 << 16


@dataclass(slots=True)
class _Due:
    """A scheduled call that can be cancelled."""

    call: Callable[[int], None] | None

    def cancel(self) -> None:
        self.call = None


class Timers:
    """Calls at times of CLOCK_MONOTONIC; those within one grain run together."""

    def __init__(self) -> None:
        self._heap: list[int] = []  # every time in ``_due``
        self._due: dict[int, list[_Due]] = {}
        self._rang_ns = 0

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> Timer:
        """Schedule ``call`` with argument ``at_ns`` at that time."""
        due = _Due(call)
        others = self._due.get(at_ns)
        if others is None:
            heapq.heappush(self._heap, at_ns)
            self._due[at_ns] = [due]
        else:
            others.append(due)
        return due

    def wait_s(self, now: int) -> float | None:
        """Return the time to sleep until the next call; None if there is none."""
        if not self._heap:
            return None
        return max(self._heap[0], self._rang_ns + GRAIN_NS, now) / 1e9 - now / 1e9

    def ring(self, now: int) -> None:
        """Run the calls that are due."""
        if now < self._rang_ns + GRAIN_NS or not self._heap or self._heap[0] > now:
            return
        self._rang_ns = now
        while self._heap and self._heap[0] <= now:
            at_ns = heapq.heappop(self._heap)
            for due in self._due.pop(at_ns):
                if due.call is not None:
                    due.call(at_ns)


@dataclass(slots=True, eq=False)
class _Member:
    """One speaker with the state that the lab knows; also the speaker's environment."""

    number: int
    station: LacpMainLoop
    space: NetNs
    life: int = 0
    speaker: Speaker = field(init=False)

    def open(self, ns: NetNs, interface: str, on_frame: OnFrame) -> Wire:
        return self.station.open(ns, interface, on_frame)

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> Timer:
        return self.station.call_at(at_ns, call)

    def beat_ns(self, ns: NetNs) -> int:
        return self.station.beat_ns(ns)

    def moved(self) -> None:
        """Schedule a report of the ports' status."""
        self.station.moved[self.number] = self

    def entered(self, event: Event) -> None:
        self.station.news.append(
            messages.Entered(self.number, self.life, event.at_ns, event.subject, event.what, event.detail)
        )

    def active(self, ports: tuple[str, ...]) -> None:
        self.station.news.append(messages.Active(self.number, self.life, ports))

    def stands(self) -> messages.Stands:
        return messages.Stands(self.number, self.life, messages.as_rows(self.speaker.status()))


class LacpMainLoop:
    """Speakers of a lab, which is at the other end of ``lab``, a stream socket."""

    def __init__(self, lab: socket.socket) -> None:
        lab.setblocking(False)
        self._lab = lab
        self._poll = select.epoll()
        self._poll.register(lab, select.EPOLLIN)
        self._airs: dict[int, SlowProtocols] = {}  # by the namespace's descriptor
        self._by_socket: dict[int, SlowProtocols] = {}
        self._members: dict[int, _Member] = {}
        self._places: dict[int, int] = {}  # of namespaces, in order of first use
        self._began_ns = now_ns()
        self._rest = b""
        self._unsent = bytearray()
        self._timers = Timers()
        self.news: list[messages.News] = []
        self.moved: dict[int, _Member] = {}
        self._sending: set[SlowProtocols] = set()

    def run(self) -> None:
        """Run until the lab closes the connection. OSError when an interface is missing."""
        while True:
            for descriptor, _ in self._poll.poll(self._timers.wait_s(now_ns())):
                if descriptor != self._lab.fileno():
                    self._by_socket[descriptor].read()
                elif not self._obey():
                    return
            self._timers.ring(now_ns())
            self._tell()
            for air in self._sending:
                air.flush()
            self._sending.clear()

    def open(self, ns: NetNs, interface: str, on_frame: OnFrame) -> Wire:
        """Open one port. OSError when it is missing."""
        air = self._airs.get(ns.fd)
        if air is None:
            air = self._airs[ns.fd] = SlowProtocols(ns, self._poll, self)
        port = air.open(interface, on_frame)
        self._by_socket[air.descriptor] = air
        return port

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> Timer:
        """Schedule ``call`` with argument ``at_ns`` at that time."""
        return self._timers.call_at(at_ns, call)

    def flush_soon(self, air: SlowProtocols) -> None:
        """Send the frames waiting in ``air`` at the end of this turn."""
        self._sending.add(air)

    def beat_ns(self, ns: NetNs) -> int:
        """Return the phase of a namespace's periodic LACPDUs, the same at every call."""
        place = self._places.setdefault(ns.fd, len(self._places))
        return self._began_ns + place % BEATS * SECOND_NS // BEATS

    def _obey(self) -> bool:
        """Execute the waiting orders; False when the lab has closed the connection."""
        try:
            data = self._lab.recv(_READ)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._carry_out(messages.decode(line))
        return bool(data)

    def _carry_out(self, order: Message) -> None:
        match order:
            case Make():
                self._make(order)
            case Start(number, life):
                member = self._members[number]
                member.life = life
                member.speaker.start()
                member.moved()
            case Stop(number):
                self._members[number].speaker.stop()
            case Freeze(number):
                self._members[number].speaker.freeze()
            case Thaw(number):
                self._members[number].speaker.thaw()
            case Refuse(number, refusing):
                self._members[number].speaker.refuse(refusing)
            case Carrier(number, port, up):
                self._members[number].speaker.carrier(port, up)
            case Settle(number):
                self.news.append(Settled(number))

    def _make(self, order: Make) -> None:
        space = NetNs(order.node, order.namespace)
        member = _Member(order.speaker, self, space)
        config, ports = messages.made(order)
        system = SystemAt(order.node, space, config, ports, member.entered, member.active)
        member.speaker = Speaker(system, around=member)
        self._members[order.speaker] = member

    def _tell(self) -> None:
        """Send news to the lab, port status before events; unread news wait here."""
        news = [*(member.stands() for member in self.moved.values()), *self.news]
        self.moved.clear()
        self.news.clear()
        if not news and not self._unsent:
            return
        self._unsent += b"".join(map(messages.encode, news))
        try:
            del self._unsent[: self._lab.send(self._unsent)]
        except BlockingIOError:
            pass
        except ConnectionError:
            self._unsent.clear()  # the next read will report it
        self._poll.modify(self._lab, select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))
