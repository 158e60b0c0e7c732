"""One LACP System: its ports, its Selection Logic and its clock-free API (IEEE 802.1AX-2014, 6.4).

Selection: ports whose Partner shows the same system priority, system ID and key belong to one Aggregator; a Partner
that refuses aggregation gets an Aggregator of its own. One Aggregator is active at a time. The ports of the others are
STANDBY: out of Synchronization, so their Partners send nothing either. This refuses a ToR with a system ID of its own.
The active Aggregator is the one with most usable ports; on a tie, the one with the lowest port number. Once one of its
ports has attached it stays until none is usable: Linux bonding's ad_select=stable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hpn.testbed.lag.config import LacpConfig, PortConfig
from hpn.testbed.lag.lacpdu import Lacpdu, PortInfo
from hpn.testbed.lag.port import LacpPort
from hpn.testbed.lag.port_at_rest import RestHistory
from hpn.testbed.lag.states import LagId, Mux, Rx, Selected


@dataclass(frozen=True, slots=True)
class Transmit:
    """Action: send this LACPDU out of this port."""

    port: str
    pdu: Lacpdu


@dataclass(frozen=True, slots=True)
class StateChanged:
    """Action: a machine of ``port`` entered the state ``what``, or its Partner changed ('partner-changed')."""

    port: str
    what: str
    detail: Mapping[str, str | int] = field(default_factory=dict)


Action = Transmit | StateChanged


@dataclass(frozen=True, slots=True)
class PortStatus:
    """Status of one port, for display."""

    name: str
    enabled: bool
    actor: PortInfo
    partner: PortInfo
    rx: Rx
    mux: Mux
    selected: Selected


class LacpSystem:
    """LACP of one System. Every call takes CLOCK_MONOTONIC nanoseconds and returns actions, in order."""

    def __init__(self, config: LacpConfig, ports: Sequence[PortConfig], beat_ns: int | None = None) -> None:
        """Begin (BEGIN) with all ports without carrier. ``beat_ns`` aligns periodic LACPDUs, as in ``LacpPort``."""
        self.config = config
        self.refusing = False  # set by the operator: no port may be SELECTED, so every Partner leaves its port
        self.settled = 0  # number of runs of the machines; ``status`` does not change between two runs
        self._refused = False  # ``refusing`` at the last selection
        self._actions: list[Action] = []
        self._beat_ns = beat_ns
        self._ports = {port.name: self._new_port(port) for port in ports}
        self._said: dict[str, Transmit] = {}  # the last one of each port
        self._active: LagId | None = None

    def _new_port(self, port: PortConfig) -> LacpPort:
        def report(what: str, detail: Mapping[str, str | int]) -> None:
            self._actions.append(StateChanged(port.name, what, detail))

        return LacpPort(self.config, port, report, self._beat_ns)

    def carrier(self, port: str, up: bool, now: int) -> list[Action]:
        """Set the carrier of ``port`` (port_enabled)."""
        self._ports[port].carrier(up, now)
        return self.tick(now)

    def receive(self, port: str, pdu: Lacpdu, now: int) -> list[Action]:
        """Handle a received ``pdu``."""
        receiver = self._ports[port]
        receiver.receive(pdu, now)
        return self.tick(now) if receiver.stirred else []

    def again(self, port: str, pdu: Lacpdu, now: int) -> bool:
        """Handle a received ``pdu`` if it repeats the last one; return True if so, as nothing else is to be done."""
        return self._ports[port].again(pdu, now)

    def tick(self, now: int) -> list[Action]:
        """Run every machine until all rest. Due at ``next_deadline``; harmless at any other time."""
        stirred = self._refused is not self.refusing
        for port in self._ports.values():
            port.run_timers(now)
            stirred = stirred or port.stirred
        if stirred:
            self._settle(now)
        for name, port in self._ports.items():
            pdu = port.transmit(now)
            if pdu is not None:
                said = self._said.get(name)
                if said is None or said.pdu is not pdu:
                    said = self._said[name] = Transmit(name, pdu)
                self._actions.append(said)
        actions, self._actions = self._actions, []
        return actions

    def _settle(self, now: int) -> None:
        """Select and run the Mux machines until all rest; they then rest until an event at a port."""
        ports = self._ports.values()
        moved = True
        while moved:
            self._select()
            ready = all(port.ready for port in ports if port.mux is Mux.WAITING and port.selected is Selected.SELECTED)
            moved = False
            for port in ports:
                moved |= port.run_mux(ready, now)
        self._refused = self.refusing
        self.settled += 1
        for port in ports:
            port.stirred = False

    def next_deadline(self) -> int | None:
        """Return when ``tick`` next has something to do; None when only a carrier or a frame can change anything."""
        due = None
        for port in self._ports.values():
            at = port.next_deadline()
            if at is not None and (due is None or at < due):
                due = at
        return due

    def at_rest(self) -> dict[str, tuple[Lacpdu, Lacpdu, int, int]]:
        """Return ``LacpPort.at_rest`` of the ports that send, if all of them rest; else nothing."""
        found = {}
        for name, port in self._ports.items():
            rest = port.at_rest()
            if rest is not None:
                found[name] = rest
            elif port.next_deadline() is not None:
                return {}
        return found

    def resume(self, port: str, rested: RestHistory) -> None:
        """Resume a port that was at rest."""
        self._ports[port].resume(rested)

    @property
    def active_ports(self) -> tuple[str, ...]:
        """Ports that collect and distribute, in configured order."""
        return tuple(name for name in self._ports if self.collecting_distributing(name))

    def collecting_distributing(self, port: str) -> bool:
        """Return True while ``port`` carries the LAG's frames."""
        return self._ports[port].mux is Mux.COLLECTING_DISTRIBUTING

    def status(self) -> tuple[PortStatus, ...]:
        """Return every port's status, in configured order."""
        return tuple(
            PortStatus(name, port.enabled, port.actor, port.partner, port.rx, port.mux, port.selected)
            for name, port in self._ports.items()
        )

    def _select(self) -> None:
        """Run the Selection Logic (6.4.14): an Aggregator for each port, and one active Aggregator."""
        ports = tuple(self._ports.values())
        for port in ports:
            # A port that must leave its Aggregator gets a new one only after the Mux has detached from the old.
            if port.aggregator is None and port.mux is Mux.DETACHED:
                port.aggregator = port.lag_id()
        self._active = _choose_active(self._active, ports)
        for port in ports:
            if port.aggregator is not None:
                chosen = port.aggregator == self._active and not self.refusing
                port.select(Selected.SELECTED if chosen else Selected.STANDBY)


def _choose_active(active: LagId | None, ports: Sequence[LacpPort]) -> LagId | None:
    usable: dict[LagId, list[LacpPort]] = {}
    for port in ports:
        if port.aggregator is not None and port.usable:
            usable.setdefault(port.aggregator, []).append(port)
    if not usable or (active in usable and any(port.attached for port in usable[active])):
        return active
    return max(usable, key=lambda lag: (len(usable[lag]), -min(port.config.number for port in usable[lag])))
