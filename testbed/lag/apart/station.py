"""The process that speaks LACP for a lab: its speakers, their packet sockets, their timers.

No asyncio: what is due within ``GRAIN_NS`` is done in one go, and all that a turn sends in a namespace leaves by one
system call. The ports of a namespace send together what they send every second, and several namespaces do so at one
moment, so that their partners too hear many frames at one waking: thousands of ports cost little at rest. What is
received is acted on at once.
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
from hpn.testbed.lag.apart import messages
from hpn.testbed.lag.apart.air import Air
from hpn.testbed.lag.apart.messages import Carrier, Freeze, Make, Message, Refuse, Settle, Settled, Start, Stop, Thaw
from hpn.testbed.lag.config import SECOND_NS
from hpn.testbed.lag.speaker import Speaker, SystemAt, Timer, Wire

GRAIN_NS = 10_000_000
"""Timers fire up to so much late."""

BEATS = 8
"""Moments of each second at which namespaces send: fewer are cheaper, and each takes longer."""

_READ = 1 << 16


@dataclass(slots=True)
class _Due:
    """A call that is to be made, unless it is cancelled."""

    call: Callable[[int], None] | None

    def cancel(self) -> None:
        self.call = None


class Timers:
    """Calls to be made at times of CLOCK_MONOTONIC, those of one grain together."""

    def __init__(self) -> None:
        self._heap: list[int] = []  # every time that is in ``_due``
        self._due: dict[int, list[_Due]] = {}
        self._rang_ns = 0

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> Timer:
        """Have ``call`` called with ``at_ns`` then."""
        due = _Due(call)
        others = self._due.get(at_ns)
        if others is None:
            heapq.heappush(self._heap, at_ns)
            self._due[at_ns] = [due]
        else:
            others.append(due)
        return due

    def wait_s(self, now: int) -> float | None:
        """How long to sleep until something is to be done; None when nothing is."""
        if not self._heap:
            return None
        return max(self._heap[0], self._rang_ns + GRAIN_NS, now) / 1e9 - now / 1e9

    def ring(self, now: int) -> None:
        """Make the calls that are due."""
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
    """One speaker, and what is known of it at the other end; also what it runs in."""

    number: int
    station: Station
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
        """Have it told how the ports stand."""
        self.station.moved[self.number] = self

    def entered(self, event: Event) -> None:
        self.station.news.append(
            messages.Entered(self.number, self.life, event.at_ns, event.subject, event.what, event.detail)
        )

    def active(self, ports: tuple[str, ...]) -> None:
        self.station.news.append(messages.Active(self.number, self.life, ports))

    def stands(self) -> messages.Stands:
        return messages.Stands(self.number, self.life, messages.as_rows(self.speaker.status()))


class Station:
    """All speakers of a lab, which is at the other end of ``lab``, a stream socket."""

    def __init__(self, lab: socket.socket) -> None:
        lab.setblocking(False)
        self._lab = lab
        self._poll = select.epoll()
        self._poll.register(lab, select.EPOLLIN)
        self._airs: dict[int, Air] = {}  # by the namespace's descriptor
        self._by_socket: dict[int, Air] = {}
        self._members: dict[int, _Member] = {}
        self._places: dict[int, int] = {}  # of namespaces, in the order in which they were heard of
        self._began_ns = now_ns()
        self._rest = b""
        self._unsent = bytearray()
        self._timers = Timers()
        self.news: list[messages.News] = []
        self.moved: dict[int, _Member] = {}
        self._sending: set[Air] = set()

    def run(self) -> None:
        """Speak until the lab hangs up. OSError when an interface is missing."""
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
        """One port. OSError when it is missing."""
        air = self._airs.get(ns.fd)
        if air is None:
            air = self._airs[ns.fd] = Air(ns, self._poll, self)
        port = air.open(interface, on_frame)
        self._by_socket[air.descriptor] = air
        return port

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> Timer:
        """Have ``call`` called with ``at_ns`` then."""
        return self._timers.call_at(at_ns, call)

    def flush_soon(self, air: Air) -> None:
        """Send what waits there at the end of this turn."""
        self._sending.add(air)

    def beat_ns(self, ns: NetNs) -> int:
        """A time to which the periodic LACPDUs of a namespace keep, the same whenever it is asked for."""
        place = self._places.setdefault(ns.fd, len(self._places))
        return self._began_ns + place % BEATS * SECOND_NS // BEATS

    def _obey(self) -> bool:
        """Carry out what orders there are; False when the lab has hung up."""
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
        """Tell the lab the news, how ports stand before what happened; what it does not read yet waits here."""
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
            self._unsent.clear()  # the next reading says so
        self._poll.modify(self._lab, select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))
