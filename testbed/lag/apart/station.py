"""The process that speaks LACP for a lab: its speakers, their packet sockets, their timers.

No asyncio: what is due within ``GRAIN_NS`` is done in one go, and all that a turn sends in a namespace leaves by one
system call, so that thousands of ports cost little at rest. What is received is acted on at once.
"""

from __future__ import annotations

import heapq
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from testbed.events import Event, now_ns
from testbed.kernel.ns import NetNs
from testbed.kernel.packet import OnFrame, close_soon
from testbed.kernel.packet_batch import PacketBatch
from testbed.lag.apart import messages
from testbed.lag.apart.messages import Carrier, Freeze, Make, Message, Refuse, Settle, Settled, Start, Stop, Thaw
from testbed.lag.lacpdu import ETHERTYPE_SLOW_PROTOCOLS, SLOW_PROTOCOLS_MAC
from testbed.lag.speaker import Speaker, Timer, Wire

GRAIN_NS = 10_000_000
"""Timers fire up to so much late."""

_READ = 1 << 16


@dataclass(slots=True)
class _Due:
    """A call that is to be made, unless it is cancelled, and what is called after it."""

    call: Callable[[int], None] | None
    then: Callable[[], None]

    def cancel(self) -> None:
        self.call = None


class Timers:
    """Calls to be made at times of CLOCK_MONOTONIC, those of one grain together."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, _Due]] = []
        self._number = count()
        self._rang_ns = 0

    def call_at(self, at_ns: int, call: Callable[[int], None], then: Callable[[], None] = lambda: None) -> Timer:
        """Have ``call`` called with ``at_ns`` then, and ``then`` afterwards."""
        due = _Due(call, then)
        heapq.heappush(self._heap, (at_ns, next(self._number), due))
        return due

    def wait_s(self, now: int) -> float | None:
        """How long to sleep until something is to be done; None when nothing is."""
        if not self._heap:
            return None
        return max(self._heap[0][0], self._rang_ns + GRAIN_NS, now) / 1e9 - now / 1e9

    def ring(self, now: int) -> None:
        """Make the calls that are due."""
        if now < self._rang_ns + GRAIN_NS or not self._heap or self._heap[0][0] > now:
            return
        self._rang_ns = now
        while self._heap and self._heap[0][0] <= now:
            at_ns, _, due = heapq.heappop(self._heap)
            if due.call is not None:
                due.call(at_ns)
                due.then()


class Air:
    """The slow protocols of one namespace: a socket as long as any of its ports is open."""

    def __init__(self, space: NetNs, poll: select.epoll) -> None:
        self._space = space
        self._poll = poll
        self._batch: PacketBatch | None = None
        self._listeners: dict[int, OnFrame] = {}
        self.waiting: list[tuple[int, bytes]] = []

    def open(self, interface: str, on_frame: OnFrame) -> int:
        """Listen at an interface; its index. OSError when it is missing."""
        with self._space.entered():
            ifindex = socket.if_nametoindex(interface)
        if self._batch is None:
            self._batch = PacketBatch(self._space, ETHERTYPE_SLOW_PROTOCOLS, SLOW_PROTOCOLS_MAC)
            self._poll.register(self._batch.socket, select.EPOLLIN)
        self._batch.listen(ifindex)
        self._listeners[ifindex] = on_frame
        return ifindex

    def close(self, ifindex: int) -> None:
        """Hear nothing of an interface, and send nothing that waits to leave by it."""
        del self._listeners[ifindex]
        self.waiting = [frame for frame in self.waiting if frame[0] != ifindex]
        if not self._listeners and self._batch is not None:
            self._poll.unregister(self._batch.socket)
            close_soon(self._batch.socket)
            self._batch = None

    @property
    def descriptor(self) -> int:
        """Of its socket; -1 when it has none."""
        return -1 if self._batch is None else self._batch.socket.fileno()

    def read(self) -> None:
        """Hand on what was received."""
        if self._batch is not None:
            for ifindex, payload in self._batch.receive():
                listener = self._listeners.get(ifindex)
                if listener is not None:
                    listener(payload, "")

    def flush(self) -> None:
        """Send what waits."""
        if self._batch is not None and self.waiting:
            self._batch.send(self.waiting)
        self.waiting = []


@dataclass(frozen=True, slots=True)
class _Port:
    """One open port."""

    station: Station
    air: Air
    ifindex: int

    def send(self, payload: bytes, _destination: str) -> bool:
        self.air.waiting.append((self.ifindex, payload))
        self.station.sending[id(self.air)] = self.air
        return True

    def close(self) -> None:
        self.air.close(self.ifindex)


@dataclass(slots=True, eq=False)
class _Member:
    """One speaker, and what is known of it at the other end; also what it runs in."""

    number: int
    station: Station
    space: NetNs
    life: int = 0
    told: int = -1
    speaker: Speaker = field(init=False)

    def open(self, ns: NetNs, interface: str, on_frame: OnFrame) -> Wire:
        def heard(payload: bytes, source: str) -> None:
            on_frame(payload, source)
            self.look()

        return self.station.open(ns, interface, heard)

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> Timer:
        return self.station.timers.call_at(at_ns, call, self.look)

    def look(self) -> None:
        """Have it told how the ports stand, where that has changed."""
        if self.speaker.settled != self.told:
            self.station.moved[self.number] = self

    def entered(self, event: Event) -> None:
        self.station.news.append(
            messages.Entered(self.number, self.life, event.at_ns, event.subject, event.what, event.detail)
        )

    def active(self, ports: tuple[str, ...]) -> None:
        self.station.news.append(messages.Active(self.number, self.life, ports))

    def stands(self) -> messages.Stands:
        self.told = self.speaker.settled
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
        self._rest = b""
        self._unsent = bytearray()
        self.timers = Timers()
        self.news: list[messages.News] = []
        self.moved: dict[int, _Member] = {}
        self.sending: dict[int, Air] = {}

    def run(self) -> None:
        """Speak until the lab hangs up. OSError when an interface is missing."""
        while True:
            for descriptor, _ in self._poll.poll(self.timers.wait_s(now_ns())):
                if descriptor != self._lab.fileno():
                    self._by_socket[descriptor].read()
                elif not self._obey():
                    return
            self.timers.ring(now_ns())
            self._tell()
            for air in self.sending.values():
                air.flush()
            self.sending.clear()

    def open(self, ns: NetNs, interface: str, on_frame: OnFrame) -> Wire:
        """One port. OSError when it is missing."""
        air = self._airs.setdefault(ns.fd, Air(ns, self._poll))
        port = _Port(self, air, air.open(interface, on_frame))
        self._by_socket[air.descriptor] = air
        return port

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
                member.life, member.told = life, -1
                member.speaker.start()
                member.look()
            case Stop(number):
                self._members[number].speaker.stop()
            case Freeze(number):
                self._members[number].speaker.freeze()
            case Thaw(number):
                self._members[number].speaker.thaw()
                self._members[number].look()
            case Refuse(number, refusing):
                self._members[number].speaker.refuse(refusing)
                self._members[number].look()
            case Carrier(number, port, up):
                self._members[number].speaker.carrier(port, up)
                self._members[number].look()
            case Settle(number):
                self.news.append(Settled(number))

    def _make(self, order: Make) -> None:
        space = NetNs(order.node, order.namespace)
        member = _Member(order.speaker, self, space)
        config, ports = messages.made(order)
        member.speaker = Speaker(
            order.node, space, config, ports, emit=member.entered, on_active=member.active, around=member
        )
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
