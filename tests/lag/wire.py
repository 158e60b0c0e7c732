"""A pretended network of LACP systems in pretended time: what one sends, the other gets, unless told otherwise."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from itertools import count

from hpn.testbed.lag.config import SECOND_NS, LacpConfig, PortConfig
from hpn.testbed.lag.lacpdu import Lacpdu, decode, encode
from hpn.testbed.lag.machine import LacpSystem, PortStatus, StateChanged, Transmit

End = tuple[str, str]  # (system, port)
Channel = Callable[[], tuple[int, ...]]  # delays in ns of the copies of one frame: () loses it

DELAY_NS = 1000


def prompt() -> tuple[int, ...]:
    """A cable that delivers everything, in order."""
    return (DELAY_NS,)


class Wire:
    """Systems joined by cables. Time only moves in ``run``."""

    def __init__(self, systems: Mapping[str, LacpSystem], cables: Mapping[End, End]) -> None:
        self.systems = dict(systems)
        self.now = 0
        self.channel: Channel = prompt
        self.sent: list[tuple[int, str, str, Lacpdu]] = []
        self.changes: list[tuple[int, str, StateChanged]] = []
        self._peer = {**cables, **{far: near for near, far in cables.items()}}
        self._muted: set[str] = set()
        self._flying: list[tuple[int, int, End, bytes]] = []
        self._order = count()

    def carrier(self, end: End, up: bool) -> None:
        """Both ends of the cable at ``end`` see the carrier come or go; frames under way are lost when it goes."""
        ends = (end, self._peer[end])
        if not up:
            self._flying = [frame for frame in self._flying if frame[2] not in ends]
            heapq.heapify(self._flying)
        for system, port in ends:
            self._do(system, self.systems[system].carrier(port, up, self.now))

    def mute(self, system: str, silent: bool = True) -> None:
        """Nothing that ``system`` sends arrives any more (its links stay up)."""
        self._muted = self._muted | {system} if silent else self._muted - {system}

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + round(seconds * SECOND_NS)
        for steps in count():
            assert steps < 100_000, "a busy loop"
            at = self._next()
            if at is None or at > end:
                break
            self.now = max(self.now, at)
            self._deliver()
            for name, system in self.systems.items():
                due = system.next_deadline()
                if due is not None and due <= self.now:
                    self._do(name, system.tick(self.now))
        self.now = end

    def active(self, system: str) -> tuple[str, ...]:
        """The ports on which ``system`` collects and distributes."""
        return self.systems[system].active_ports

    def port(self, system: str, port: str) -> PortStatus:
        """How one port stands."""
        return next(status for status in self.systems[system].status() if status.name == port)

    def seen(self, system: str, port: str, what: str) -> Iterator[int]:
        """When ``port`` of ``system`` reported ``what``."""
        return (at for at, name, change in self.changes if (name, change.port, change.what) == (system, port, what))

    def _next(self) -> int | None:
        deadlines = [system.next_deadline() for system in self.systems.values()]
        times = [at for at in deadlines if at is not None]
        return min([*times, self._flying[0][0]] if self._flying else times, default=None)

    def _deliver(self) -> None:
        while self._flying and self._flying[0][0] <= self.now:
            _, _, (system, port), payload = heapq.heappop(self._flying)
            pdu = decode(payload)
            assert pdu is not None
            self._do(system, self.systems[system].receive(port, pdu, self.now))

    def _do(self, system: str, actions: list[Transmit | StateChanged]) -> None:
        for action in actions:
            if isinstance(action, StateChanged):
                self.changes.append((self.now, system, action))
                continue
            self.sent.append((self.now, system, action.port, action.pdu))
            far = self._peer.get((system, action.port))
            if far is None or system in self._muted:
                continue
            for delay in self.channel():
                frame = (self.now + delay, next(self._order), far, encode(action.pdu))
                heapq.heappush(self._flying, frame)


SHARED = "00:00:5e:00:01:01"
OTHER = "00:00:5e:00:01:02"


def host(ports: int = 2, *, fast: bool = True, wait_s: float = 2.0) -> LacpSystem:
    """A host's NIC with ports eth0, eth1, ..."""
    config = LacpConfig("02:00:00:00:00:0a", key=9, fast=fast, aggregate_wait_ns=round(wait_s * SECOND_NS))
    return LacpSystem(config, [PortConfig(f"eth{index}", index + 1) for index in range(ports)])


def tor(
    offset: int,
    *,
    system: str = SHARED,
    key: int = 7,
    priority: int = 65535,
    fast: bool = True,
    wait_s: float = 2.0,
    active: bool = True,
    independent: bool = False,
    restore_s: float = 0,
) -> LacpSystem:
    """A ToR's access port as HPN has it: shared system ID, port number = physical port + offset."""
    waits = round(wait_s * SECOND_NS), active, independent, round(restore_s * SECOND_NS)
    config = LacpConfig(system, key, priority, fast, *waits)
    return LacpSystem(config, [PortConfig("down0", offset + 1)])


def dual_tor(nic: LacpSystem, *tors: LacpSystem) -> Wire:
    """``nic``, its port i cabled to ToR i; every link up."""
    names = [f"tor{index}" for index in range(len(tors))]
    cables = {("host", f"eth{index}"): (name, "down0") for index, name in enumerate(names)}
    wire = Wire({"host": nic, **dict(zip(names, tors, strict=True))}, cables)
    for end in cables:
        wire.carrier(end, True)
    return wire
