"""The LACP speaker: one LacpSystem on the wire.

It belongs to one node. A system costs one timer, a namespace one packet socket, so that a process can speak for
every port of a lab. CLOCK_MONOTONIC is the machines' clock. What it asks of the process it runs in is ``Surroundings``:
an asyncio loop, unless said otherwise.
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
from hpn.testbed.lag.rest import Resting, RestingWire

ActiveSink = Callable[[tuple[str, ...]], None]
_NOTHING: tuple[bytes, Lacpdu | None] = (b"", None)


class Timer(Protocol):
    """Something that will be called."""

    def cancel(self) -> None:
        """Or not."""


class Wire(Protocol):
    """One port, open for slow protocols."""

    def send(self, payload: bytes, destination: str) -> bool:
        """Send one frame to a MAC address; False when it is known that it did not leave."""

    def close(self) -> None:
        """Hear and send nothing more."""


class Surroundings(Protocol):
    """What a speaker needs of the process that it runs in."""

    def open(self, ns: NetNs, interface: str, on_frame: OnFrame) -> Wire:
        """Have ``on_frame`` called with what the port receives. OSError when it is missing."""

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> Timer:
        """Have ``call`` called with ``at_ns`` when CLOCK_MONOTONIC is there."""

    def beat_ns(self, ns: NetNs) -> int | None:
        """What the periodic LACPDUs of all its ports keep to, as ``LacpPort`` has it; None to send each alone."""

    def moved(self) -> None:
        """Hear that the machines have moved: the ports may stand otherwise than before."""


class InLoop:
    """An asyncio loop, which is running whenever a speaker is called."""

    def open(self, ns: NetNs, interface: str, on_frame: OnFrame) -> Wire:
        """A packet socket."""
        return PacketSocket(ns, interface, ETHERTYPE_SLOW_PROTOCOLS, group=SLOW_PROTOCOLS_MAC, on_frame=on_frame)

    def call_at(self, at_ns: int, call: Callable[[int], None]) -> Timer:
        """The loop's own clock is that one too."""
        return asyncio.get_running_loop().call_at(at_ns / SECOND_NS, call, at_ns)

    def beat_ns(self, ns: NetNs) -> int | None:
        """Ports of one node send when each is due: drills fall on their timers at any phase."""

    def moved(self) -> None:
        """Whoever wants to know asks."""


_IN_LOOP = InLoop()


@dataclass(frozen=True, slots=True)
class SystemAt:
    """One LACP System of ``node``, on interfaces of ``ns``; ``emit`` hears what happens.

    ``on_active`` is called with the collecting and distributing ports whenever they change, within the call that
    changed them and before anything is sent or told.
    """

    node: str
    ns: NetNs
    config: LacpConfig
    ports: Sequence[PortConfig]
    emit: EventSink
    on_active: ActiveSink | None = None


class Speaker:
    """Speaks LACP for one System; use it inside a running loop.

    Ports are without carrier until ``carrier`` says otherwise.
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
        self._heard: dict[str, tuple[bytes, Lacpdu | None]] = {}  # the last PDU on each port, as it came and as read
        self._said: dict[str, tuple[Lacpdu, bytes]] = {}  # the last one sent
        self._active: tuple[str, ...] = ()
        self._looked = 0  # the last time the machines had moved when the active ports were looked at
        self._resting: dict[str, RestingWire] = {}  # all its ports that speak, or none
        self._timer: Timer | None = None
        self._due = 0  # when the timer fires

    @property
    def active_ports(self) -> tuple[str, ...]:
        """The ports that collect and distribute, in configured order."""
        return self._system.active_ports

    def status(self) -> tuple[PortStatus, ...]:
        """How each port stands."""
        return self._system.status()

    def start(self) -> None:
        """BEGIN: open the sockets and forget any earlier life. OSError when an interface is missing."""
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
        """Fall silent without a farewell, as a switch that crashes does. ``on_active`` is not called."""
        self.freeze()
        self._active = ()

    def freeze(self) -> None:
        """Fall silent and deaf but forget nothing, as a process that hangs; until ``thaw``."""
        self._wake()
        for opened in self._sockets.values():
            opened.close()
        self._sockets.clear()
        self._drop_timer()

    def thaw(self) -> None:
        """Run on after ``freeze``; timers that ran out meanwhile are due now."""
        self._open()
        now = now_ns()
        self._apply(self._system.tick(now), now)

    def refuse(self, refusing: bool) -> None:
        """Take every port out of its Aggregator, or back. Takes effect at once."""
        self._wake()
        self._system.refusing = refusing
        if self._sockets:
            now = now_ns()
            self._apply(self._system.tick(now), now)

    def carrier(self, port: str, up: bool) -> None:
        """The lab's link monitor saw the carrier of ``port``. Ignored while stopped."""
        if self._sockets:
            self._wake()
            now = now_ns()
            self._apply(self._system.carrier(port, up, now), now)

    def _received(self, port: str, payload: bytes, _source: str) -> None:
        """Partners say the same every second: what is as it was on this port is not read anew."""
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
        """Leave it to the wires to say and hear the same, where they can and nothing else is to be done."""
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
        """Run the machines again, where they were left."""
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
        """Have the timer fire no later than the next deadline.

        A timer that fires too early finds nothing due and is armed again: cheaper than moving it at every frame.
        """
        due = self._system.next_deadline()
        if due is None or (self._timer is not None and self._due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._around.call_at(due, self._tick)
