"""The slow protocols of one namespace: its packet socket, and the periodic LACPDUs of its resting ports.

Most LACPDUs repeat the previous one, in both directions. Running the state machines for each of them dominates the cost
of a process with thousands of ports, because their data is scattered in memory. So a speaker whose ports are at rest
delegates to this module: an expected frame only extends a deadline, and all their LACPDUs are sent once a second. The
speaker is woken for any other frame, and when a partner has been silent for too long.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hpn.testbed.events import now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet import OnFrame, close_soon
from hpn.testbed.kernel.packets.packet_batch import Frame, PacketBatch
from hpn.testbed.lag.config import FAST_PERIODIC_NS, SHORT_TIMEOUT_NS
from hpn.testbed.lag.lacpdu import ETHERTYPE_SLOW_PROTOCOLS, SLOW_PROTOCOLS_MAC
from hpn.testbed.lag.port_at_rest import RestHistory, Resting


class Turn(Protocol):
    """Interface of the process to a namespace: timers, and flushing at the end of a turn."""

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> object:
        """Schedule ``call`` with argument ``at_ns`` at that time."""

    def flush_soon(self, air: SlowProtocols) -> None:
        """Send the frames waiting in ``air`` at the end of this turn."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """A port at rest: its LACPDU, the time of the first one, and a wake-up callback."""

    frame: Frame
    from_ns: int
    wake: Callable[[], None]


class SlowProtocols:
    """Slow-protocol socket of a namespace, open while any of its ports is."""

    def __init__(self, space: NetNs, poll: select.epoll, turn: Turn) -> None:
        self._space = space
        self._poll = poll
        self._turn = turn
        self._batch: PacketBatch | None = None
        self._listeners: dict[int, OnFrame] = {}
        self._resting: dict[int, _Rest] = {}
        self._expected: dict[int, bytes] = {}  # by resting port
        self._until_ns: dict[int, int] = {}  # deadline of each for waking it if nothing is received
        self._saying: list[Frame] | None = None  # frames of the resting ports; None: to be recomputed
        self._next_ns: int | None = None  # time of their next transmission
        self._said_ns = 0
        self.waiting: list[Frame] = []

    def open(self, interface: str, on_frame: OnFrame) -> AirPort:
        """Start to receive on an interface. OSError when it is missing."""
        with self._space.entered():
            ifindex = socket.if_nametoindex(interface)
        if self._batch is None:
            self._batch = PacketBatch(self._space, ETHERTYPE_SLOW_PROTOCOLS, SLOW_PROTOCOLS_MAC)
            self._poll.register(self._batch.socket, select.EPOLLIN)
        self._batch.listen(ifindex)
        self._listeners[ifindex] = on_frame
        return AirPort(self, ifindex)

    def close(self, ifindex: int) -> None:
        """Stop receiving on an interface, and discard its waiting frames."""
        del self._listeners[ifindex]
        self.waiting = [frame for frame in self.waiting if frame.ifindex != ifindex]
        if not self._listeners and self._batch is not None:
            self._poll.unregister(self._batch.socket)
            close_soon(self._batch.socket)
            self._batch = None

    @property
    def descriptor(self) -> int:
        """Descriptor of its socket; -1 when it has none."""
        return -1 if self._batch is None else self._batch.socket.fileno()

    def read(self) -> None:
        """Deliver received frames, except expected ones."""
        if self._batch is None:
            return
        expected, until_ns = self._expected, now_ns() + SHORT_TIMEOUT_NS
        for ifindex, payload in self._batch.receive():
            if ifindex in expected and expected[ifindex] == payload:
                self._until_ns[ifindex] = until_ns
            elif ifindex in self._listeners:
                self._listeners[ifindex](payload, "")

    def send(self, frame: Frame) -> None:
        """Send a frame at the end of this turn."""
        self.waiting.append(frame)
        self._turn.flush_soon(self)

    def flush(self) -> None:
        """Send the waiting frames."""
        if self._batch is not None and self.waiting:
            self._batch.send(self.waiting)
        self.waiting = []

    def rest(self, ifindex: int, frame: Frame, resting: Resting, wake: Callable[[], None]) -> None:
        """Put a port at rest: send and expect the same every second, until ``wake_up``."""
        self._resting[ifindex] = _Rest(frame, resting.due_ns, wake)
        self._expected[ifindex], self._until_ns[ifindex] = resting.heard, resting.until_ns
        self._saying = None
        if self._next_ns is None:
            self._next_ns = resting.due_ns
            self._turn.call_at(resting.due_ns, self._beat)

    def wake_up(self, ifindex: int) -> RestHistory:
        """End a port's rest and return its history since ``rest``."""
        rest = self._resting.pop(ifindex)
        del self._expected[ifindex]
        self._saying = None
        until_ns = self._until_ns.pop(ifindex)
        if self._next_ns is None or self._next_ns <= rest.from_ns:
            return RestHistory(until_ns, rest.from_ns, None)
        return RestHistory(until_ns, self._next_ns, self._said_ns)

    def _beat(self, at_ns: int) -> None:
        if not self._resting:
            self._next_ns = None
            return
        self._said_ns = now_ns()
        missed = max(self._said_ns - at_ns, 0) // FAST_PERIODIC_NS
        self._next_ns = at_ns + (missed + 1) * FAST_PERIODIC_NS
        if self._saying is None:
            self._saying = [rest.frame for rest in self._resting.values() if rest.from_ns <= at_ns]
        self.waiting += self._saying
        if len(self._saying) < len(self._resting):
            self._saying = None
        self._turn.flush_soon(self)
        self._turn.call_at(self._next_ns, self._beat)
        self._watch()

    def _watch(self) -> None:
        """Schedule a wake-up for the earliest deadline, if it is before the next beat."""
        first_ns = min(self._until_ns.values(), default=None)
        if first_ns is not None and self._next_ns is not None and first_ns < self._next_ns:
            self._turn.call_at(first_ns, self._wake_silent)

    def _wake_silent(self, at_ns: int) -> None:
        for ifindex in [ifindex for ifindex, until_ns in self._until_ns.items() if until_ns <= at_ns]:
            if ifindex in self._resting:  # it has not been woken through another port of its speaker
                self._resting[ifindex].wake()
        self._watch()


class AirPort:
    """One open port."""

    def __init__(self, air: SlowProtocols, ifindex: int) -> None:
        self._air = air
        self._ifindex = ifindex
        self._said: Frame | None = None

    def send(self, payload: bytes, _destination: str) -> bool:
        """Send a payload to the slow protocols' multicast address, at the end of this turn."""
        self._air.send(self._frame(payload))
        return True

    def rest(self, resting: Resting, wake: Callable[[], None]) -> None:
        """Send and expect the same every second; ``wake`` is called when the partner has been silent for too long."""
        self._air.rest(self._ifindex, self._frame(resting.said), resting, wake)

    def wake_up(self) -> RestHistory:
        """End the rest and return its history."""
        return self._air.wake_up(self._ifindex)

    def close(self) -> None:
        """Stop receiving and sending."""
        self._air.close(self._ifindex)

    def _frame(self, payload: bytes) -> Frame:
        if self._said is None or self._said.payload is not payload:
            self._said = Frame(self._ifindex, ETHERTYPE_SLOW_PROTOCOLS, SLOW_PROTOCOLS_MAC, payload)
        return self._said
