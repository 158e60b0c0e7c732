"""The lab's side of LACP in a process of its own: speakers that pass on what they are told and keep what comes back.

What a speaker decides is heard of one hop through a socket later than it is done: its LACPDUs leave before the lab has
moved its traffic, where a speaker in this process has it the other way round. What several speakers decide is heard in
the order in which they did.
"""

from __future__ import annotations

import asyncio
import select
import socket
import time
from collections import deque
from collections.abc import Collection, Sequence
from itertools import count

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.lag.apart import messages
from hpn.testbed.lag.apart.messages import Active, Entered, Failed, News, Order, Settled, Stands
from hpn.testbed.lag.apart.process import StationProcess
from hpn.testbed.lag.machine import LacpSystem, PortStatus
from hpn.testbed.lag.speaker import SystemAt

_READ = 1 << 16
_SETTLE_S = 2.0


class Apart:
    """All in one other process, which begins when this is made, on a running loop, and ends with ``close``."""

    def __init__(self, spaces: Collection[NetNs], emit: EventSink) -> None:
        """``spaces`` are the namespaces that speakers may be made in; ``emit`` hears of the process."""
        self.trouble: str | None = None
        self._emit = emit
        self._numbers = count()
        self._speakers: dict[int, ApartSpeaker] = {}
        self._rest = b""
        self._lines: deque[bytes] = deque()
        self._settled = 0
        self._last_words = "no word"
        self._unsent = bytearray()
        self._process: StationProcess | None = StationProcess([space.fd for space in spaces], self._died)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._process.socket, self._readable)
        self._say("started", pid=self._process.pid)

    @property
    def pids(self) -> frozenset[int]:
        """The process, while it lives."""
        return frozenset() if self._process is None else frozenset({self._process.pid})

    def make(self, system: SystemAt) -> ApartSpeaker:
        """One whose machines run there."""
        number = next(self._numbers)
        made = self._speakers[number] = ApartSpeaker(self, number, system)
        self.order(messages.make(number, system.node, system.ns.fd, system.config, system.ports))
        return made

    def order(self, order: Order) -> None:
        """Pass it on, at once where that is possible. Nothing when the process is dead: that is told otherwise."""
        if self._process is None:
            return
        idle = not self._unsent
        self._unsent += messages.encode(order)
        if idle and not self._send():
            self._loop.add_writer(self._process.socket, self._writable)

    def settle(self) -> None:
        """Return when every order is carried out and what came of it is known here; not later than in 2 s."""
        if self._process is None:
            return
        number = self._settled + 1
        self.order(messages.Settle(number))
        end = time.monotonic() + _SETTLE_S
        poller = select.poll()
        while self._process is not None and self._settled < number and (left := end - time.monotonic()) > 0:
            poller.register(self._process.socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))
            poller.poll(left * 1000)
            self._send()
            if not self._readable():
                return

    def close(self) -> None:
        """End the process; speakers are mute from then on."""
        process, self._process = self._process, None
        if process is not None:
            self._leave(process.socket)
            process.close()

    def _send(self) -> bool:
        """Whether all is sent."""
        if self._process is not None and self._unsent:
            try:
                del self._unsent[: self._process.socket.send(self._unsent, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)]
            except BlockingIOError:
                pass
            except OSError:
                self._unsent.clear()  # it is dead
        return not self._unsent

    def _writable(self) -> None:
        if self._process is not None and self._send():
            self._loop.remove_writer(self._process.socket)

    def _readable(self) -> bool:
        """Take in what has come, in order; False when no more will."""
        if self._process is None:
            return False
        try:
            data = self._process.socket.recv(_READ, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._process.socket)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(lines)
        while self._lines:
            self._hear(messages.decode(self._lines.popleft()))
        return bool(data)

    def _hear(self, news: messages.Message) -> None:
        match news:
            case Settled(number):
                self._settled = number
            case Failed(words):
                self._last_words = words
            case Active(number) | Entered(number) | Stands(number):
                self._speakers[number].hear(news)

    def _died(self, how: str) -> None:
        """Nobody here wanted that."""
        process = self._process
        if process is None:
            return
        while self._readable():
            pass
        self._process = None
        self._leave(process.socket)
        process.socket.close()
        self.trouble = f"the lab's LACP (process {process.pid}) died, {how}: {self._last_words}"
        self._say("died", pid=process.pid)

    def _leave(self, end: socket.socket) -> None:
        self._loop.remove_reader(end)
        self._loop.remove_writer(end)

    def _say(self, what: str, **detail: int) -> None:
        self._emit(Event(now_ns(), EventKind.DAEMON, "lab", "lacp", what, detail))


class ApartSpeaker:
    """One System, as it was last heard of (``testbed.lag.speakers.Speaking``)."""

    def __init__(self, apart: Apart, number: int, system: SystemAt) -> None:
        self._apart = apart
        self._number = number
        self._node = system.node
        self._config, self._ports = system.config, tuple(system.ports)
        self._emit = system.emit
        self._on_active = system.on_active
        self._life = 0
        self._frozen = False
        self._active: tuple[str, ...] = ()
        self._told: tuple[str, ...] = ()
        self._rows: Sequence[messages.JsonRow] | None = None

    @property
    def active_ports(self) -> tuple[str, ...]:
        """The ports that collect and distribute, in configured order."""
        return self._active

    def status(self) -> tuple[PortStatus, ...]:
        """How each port stands."""
        if self._rows is None:
            return LacpSystem(self._config, self._ports).status()
        return messages.from_rows(self._rows)

    def start(self) -> None:
        """BEGIN. An interface that is missing ends the process, which the lab is told."""
        self._life += 1
        self._frozen, self._active, self._told, self._rows = False, (), (), None
        self._apart.order(messages.Start(self._number, self._life))

    def stop(self) -> None:
        """Fall silent; ``Apart.settle`` returns when it is. ``on_active`` is not called."""
        self._life += 1
        self._told = ()
        self._apart.order(messages.Stop(self._number))

    def freeze(self) -> None:
        """Fall silent and deaf; ``Apart.settle`` returns when it is."""
        self._frozen = True
        self._apart.order(messages.Freeze(self._number))

    def thaw(self) -> None:
        """Run on; ``Apart.settle`` returns when timers that ran out meanwhile have done what they do."""
        self._frozen = False
        self._apart.order(messages.Thaw(self._number))
        self._tell()

    def refuse(self, refusing: bool) -> None:
        """Take every port out of its Aggregator, or back."""
        self._apart.order(messages.Refuse(self._number, refusing))

    def carrier(self, port: str, up: bool) -> None:
        """The lab's link monitor saw the carrier of ``port``."""
        self._apart.order(messages.Carrier(self._number, port, up))

    def hear(self, news: News) -> None:
        """What came of it."""
        match news:
            case Active(_, life, ports) if life == self._life:
                self._active = tuple(ports)
                self._tell()
            case Stands(_, life, rows) if life == self._life:
                self._rows = rows
            case Entered(_, life, at_ns, port, what, detail) if life == self._life:
                self._emit(Event(at_ns, EventKind.LACP, self._node, port, what, detail))
            case _:  # of a life that is over
                pass

    def _tell(self) -> None:
        """Not while it is frozen: what it decided just before is told when it runs on."""
        if not self._frozen and self._active != self._told:
            self._told = self._active
            if self._on_active is not None:
                self._on_active(self._active)
