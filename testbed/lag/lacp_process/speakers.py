"""The lab's side of out-of-process LACP: speakers that forward their calls and store the results.

A speaker's decision reaches the lab one socket hop after it took effect. Its LACPDUs leave before the lab has moved its
traffic, whereas a speaker in this process has the reverse order. Decisions of several speakers arrive in the order in
which they were made.
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
from hpn.testbed.lag.lacp_process import messages
from hpn.testbed.lag.lacp_process.messages import Active, Entered, Failed, News, Order, Settled, Stands
from hpn.testbed.lag.lacp_process.process import StationProcess
from hpn.testbed.lag.machine import LacpSystem, PortStatus
from hpn.testbed.lag.speaker import SystemAt

_READ = 1 << 16
_SETTLE_S = 2.0


class RemoteLacp:
    """Speakers in one other process, which starts with this object, on a running loop, and ends with ``close``."""

    def __init__(self, spaces: Collection[NetNs], emit: EventSink) -> None:
        """Start the process; ``spaces`` are the speakers' possible namespaces, ``emit`` receives its events."""
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
        """Process ID, while it lives."""
        return frozenset() if self._process is None else frozenset({self._process.pid})

    def make(self, system: SystemAt) -> ApartSpeaker:
        """Create a speaker whose machines run in the process."""
        number = next(self._numbers)
        made = self._speakers[number] = ApartSpeaker(self, number, system)
        self.order(messages.make(number, system.node, system.ns.fd, system.config, system.ports))
        return made

    def order(self, order: Order) -> None:
        """Forward an order, at once if possible. No-op when the process is dead, which is reported separately."""
        if self._process is None:
            return
        idle = not self._unsent
        self._unsent += messages.encode(order)
        if idle and not self._send():
            self._loop.add_writer(self._process.socket, self._writable)

    def settle(self) -> None:
        """Wait until every order is executed and its results are known here; at most 2 s."""
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
        """End the process; speakers send nothing from then on."""
        process, self._process = self._process, None
        if process is not None:
            self._leave(process.socket)
            process.close()

    def _send(self) -> bool:
        """Return True if all is sent."""
        if self._process is not None and self._unsent:
            try:
                del self._unsent[: self._process.socket.send(self._unsent, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)]
            except BlockingIOError:
                pass
            except OSError:
                self._unsent.clear()  # the process is dead
        return not self._unsent

    def _writable(self) -> None:
        if self._process is not None and self._send():
            self._loop.remove_writer(self._process.socket)

    def _readable(self) -> bool:
        """Process the received news, in order; False when there will be no more."""
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
        """Handle an unexpected exit of the LACP process."""
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
    """One System, as last reported (``testbed.lag.speakers.Speaking``)."""

    def __init__(self, apart: RemoteLacp, number: int, system: SystemAt) -> None:
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
        """Ports that collect and distribute, in configured order."""
        return self._active

    def status(self) -> tuple[PortStatus, ...]:
        """Return the status of each port."""
        if self._rows is None:
            return LacpSystem(self._config, self._ports).status()
        return messages.from_rows(self._rows)

    def start(self) -> None:
        """Start with BEGIN. A missing interface ends the process, which is reported to the lab."""
        self._life += 1
        self._frozen, self._active, self._told, self._rows = False, (), (), None
        self._apart.order(messages.Start(self._number, self._life))

    def stop(self) -> None:
        """Stop the speaker; ``RemoteLacp.settle`` returns when that is done. ``on_active`` is not called."""
        self._life += 1
        self._told = ()
        self._apart.order(messages.Stop(self._number))

    def freeze(self) -> None:
        """Stop sending and receiving; ``RemoteLacp.settle`` returns when that is done."""
        self._frozen = True
        self._apart.order(messages.Freeze(self._number))

    def thaw(self) -> None:
        """Resume; ``RemoteLacp.settle`` returns when timers that expired meanwhile have been handled."""
        self._frozen = False
        self._apart.order(messages.Thaw(self._number))
        self._tell()

    def refuse(self, refusing: bool) -> None:
        """Take every port out of its Aggregator, or put it back."""
        self._apart.order(messages.Refuse(self._number, refusing))

    def carrier(self, port: str, up: bool) -> None:
        """Forward a carrier change that the lab's link monitor reported."""
        self._apart.order(messages.Carrier(self._number, port, up))

    def hear(self, news: News) -> None:
        """Handle news from the process."""
        match news:
            case Active(_, life, ports) if life == self._life:
                self._active = tuple(ports)
                self._tell()
            case Stands(_, life, rows) if life == self._life:
                self._rows = rows
            case Entered(_, life, at_ns, port, what, detail) if life == self._life:
                self._emit(Event(at_ns, EventKind.LACP, self._node, port, what, detail))
            case _:  # of an earlier incarnation
                pass

    def _tell(self) -> None:
        """Report the active ports unless frozen: a decision just before is reported after the thaw."""
        if not self._frozen and self._active != self._told:
            self._told = self._active
            if self._on_active is not None:
                self._on_active(self._active)
