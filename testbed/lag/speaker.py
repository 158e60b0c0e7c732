"""The LACP speaker: one LacpSystem on the wire.

It belongs to one node. A system needs one timer, a namespace one packet socket, so that one process can serve
every port of a lab. The machines' clock is CLOCK_MONOTONIC. The services that it needs from its process are
``Surroundings``: by default an asyncio loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet import OnFrame, PacketSocket
from hpn.testbed.lag.config import SECOND_NS, LacpConfig, PortConfig
from hpn.testbed.lag.lacpdu import ETHERTYPE_SLOW_PROTOCOLS, SLOW_PROTOCOLS_MAC, Lacpdu, decode, encode
from hpn.testbed.lag.machine import Action, LacpSystem, PortStatus, Transmit
from hpn.testbed.lag.marker import answer
from hpn.testbed.lag.port_at_rest import Resting, RestingWire

ActiveSink = Callable[[tuple[str, ...]], None]
_NOTHING: tuple[bytes, Lacpdu | None] = (b"", None)


class Timer(Protocol):
    """Handle of a scheduled call."""

    def cancel(self) -> None:
        """Cancel the call."""


class Wire(Protocol):
    """One port, open for slow protocols."""

    def send(self, payload: bytes, destination: str) -> bool:
        """Send one frame to a MAC address; False when it is known to be lost."""

    def close(self) -> None:
        """Stop receiving and sending."""


class Surroundings(Protocol):
    """Services that a speaker needs from its process."""

    def open(self, ns: NetNs, interface: str, on_frame: OnFrame) -> Wire:
        """Open a port and call ``on_frame`` with each payload it receives. OSError when it is missing."""

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> Timer:
        """Schedule ``call`` with argument ``at_ns`` at that time of CLOCK_MONOTONIC."""

    def beat_ns(self, ns: NetNs) -> int | None:
        """Return the beat of the periodic LACPDUs of all its ports, as in ``LacpPort``; None to send each alone."""

    def moved(self) -> None:
        """Handle a run of the machines: port status may have changed."""


class InLoop:
    """Services of an asyncio loop, which must be running whenever a speaker is called."""

    def open(self, ns: NetNs, interface: str, on_frame: OnFrame) -> Wire:
        """Open a packet socket."""
        return PacketSocket(ns, interface, ETHERTYPE_SLOW_PROTOCOLS, group=SLOW_PROTOCOLS_MAC, on_frame=on_frame)

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> Timer:
        """Schedule the call on the loop, whose clock is CLOCK_MONOTONIC too."""
        return asyncio.get_running_loop().call_at(at_ns / SECOND_NS, call, at_ns)

    def beat_ns(self, ns: NetNs) -> int | None:
        """Return None: each port of a node sends when it is due, since drills fall on its timers at any phase."""

    def moved(self) -> None:
        """Do nothing: status is read on demand."""


_IN_LOOP = InLoop()


@dataclass(frozen=True, slots=True)
class SystemAt:
    """One LACP System of ``node``, on interfaces of ``ns``; ``emit`` receives its events.

    ``on_active`` is called with the collecting and distributing ports whenever they change, within the call that
    changed them and before any frame or event.
    """

    node: str
    ns: NetNs
    config: LacpConfig
    ports: Sequence[PortConfig]
    emit: EventSink
    on_active: ActiveSink | None = None


class Speaker:
    """LACP speaker of one System; use it inside a running loop.

    Ports are without carrier until ``carrier`` sets it.
    """

    def __init__(self, system: SystemAt, around: Surroundings = _IN_LOOP) -> None:
        self._node = system.node
        self._ns = system.ns
        self._config = system.config
        self._port_configs = tuple(system.ports)
        self._emit = system.emit
        self._on_active = system.on_active
        self._around = around
        self._system = self._begin()
        self._sockets: dict[str, Wire] = {}
        self._heard: dict[str, tuple[bytes, Lacpdu | None]] = {}  # the last PDU on each port, raw and decoded
        self._said: dict[str, tuple[Lacpdu, bytes]] = {}  # the last one sent
        self._active: tuple[str, ...] = ()
        self._looked = 0  # run of the machines at which the active ports were last read
        self._resting: dict[str, RestingWire] = {}  # all its ports that send, or none
        self._timer: Timer | None = None
        self._due = 0  # expiry of the timer

    @property
    def active_ports(self) -> tuple[str, ...]:
        """Ports that collect and distribute, in configured order."""
        return self._system.active_ports

    def status(self) -> tuple[PortStatus, ...]:
        """Return the status of each port."""
        return self._system.status()

    def start(self) -> None:
        """Start with BEGIN: open the sockets and discard any earlier state. OSError when an interface is missing."""
        self.stop()
        self._system = self._begin()
        self._looked = 0
        self._open()

    def _begin(self) -> LacpSystem:
        return LacpSystem(self._config, self._port_configs, self._around.beat_ns(self._ns))

    def _open(self) -> None:
        for port in self._port_configs:
            self._sockets[port.name] = self._around.open(self._ns, port.name, partial(self._received, port.name))

    def stop(self) -> None:
        """Stop without a farewell, as a switch that crashes does. ``on_active`` is not called."""
        self.freeze()
        self._active = ()

    def freeze(self) -> None:
        """Stop sending and receiving but keep all state, as a process that hangs; until ``thaw``."""
        self._wake()
        for opened in self._sockets.values():
            opened.close()
        self._sockets.clear()
        self._drop_timer()

    def thaw(self) -> None:
        """Resume after ``freeze``; timers that expired meanwhile are due now."""
        self._open()
        now = now_ns()
        self._apply(self._system.tick(now), now)

    def refuse(self, refusing: bool) -> None:
        """Take every port out of its Aggregator, or put it back. Takes effect at once."""
        self._wake()
        self._system.refusing = refusing
        if self._sockets:
            now = now_ns()
            self._apply(self._system.tick(now), now)

    def carrier(self, port: str, up: bool) -> None:
        """Handle a carrier change that the lab's link monitor reported. Ignored while stopped."""
        if self._sockets:
            self._wake()
            now = now_ns()
            self._apply(self._system.carrier(port, up, now), now)

    def _received(self, port: str, payload: bytes, _source: str) -> None:
        """Handle a received frame; a repetition of the last one on this port is not decoded again."""
        self._wake()
        now = now_ns()
        said, pdu = self._heard.get(port, _NOTHING)
        if payload != said:
            pdu = decode(payload)
            self._heard[port] = payload, pdu
        elif pdu is not None and self._system.again(port, pdu, now):
            return
        if pdu is not None:
            self._apply(self._system.receive(port, pdu, now), now)
        elif (response := answer(payload)) is not None:
            self._sockets[port].send(response, SLOW_PROTOCOLS_MAC)

    def _tick(self, due: int) -> None:
        self._timer = None
        # The loop may fire a clock tick early; treating that as due keeps it from spinning where time stands still.
        now = max(now_ns(), due)
        self._apply(self._system.tick(now), now)
        self._rest()

    def _apply(self, actions: list[Action], now: int) -> None:
        if self._system.settled != self._looked:
            self._looked = self._system.settled
            self._look()
            self._around.moved()
        for action in actions:
            if isinstance(action, Transmit):
                self._sockets[action.port].send(self._encoded(action.port, action.pdu), SLOW_PROTOCOLS_MAC)
            else:
                self._emit(Event(now, EventKind.LACP, self._node, action.port, action.what, action.detail))
        self._arm()

    def _look(self) -> None:
        active = self._system.active_ports
        if active != self._active:
            self._active = active
            if self._on_active is not None:
                self._on_active(active)

    def _encoded(self, port: str, pdu: Lacpdu) -> bytes:
        meant, said = self._said.get(port, (None, b""))
        if meant is not pdu:
            said = encode(pdu)
            self._said[port] = pdu, said
        return said

    def _rest(self) -> None:
        """Delegate the periodic LACPDUs to the wires, if they support it and nothing else is pending."""
        wires = dict[str, RestingWire]()
        rests = self._system.at_rest()
        for port, (_, heard, _, _) in rests.items():
            wire = self._sockets[port]
            if not isinstance(wire, RestingWire) or self._heard[port][1] != heard:
                return
            wires[port] = wire
        if not wires:
            return
        self._drop_timer()
        self._resting = wires
        for port, (said, _, until_ns, due_ns) in rests.items():
            wires[port].rest(Resting(self._encoded(port, said), self._heard[port][0], until_ns, due_ns), self._wake)

    def _wake(self) -> None:
        """End the rest and resume the machines."""
        if self._resting:
            resting, self._resting = self._resting, {}
            for port, wire in resting.items():
                self._system.resume(port, wire.wake_up())
            self._arm()

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        """Make the timer fire no later than the next deadline.

        A timer that fires too early finds nothing due and is armed again: cheaper than moving it at every frame.
        """
        due = self._system.next_deadline()
        if due is None or (self._timer is not None and self._due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._around.call_at(due, self._tick)
