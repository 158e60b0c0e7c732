"""Two ToRs, one in each plane, and hosts on both, without a kernel: real agents on a network that may do anything.

host 0, host 1, ... --- p0 --- ToR 0
                    \\-- p1 --- ToR 1
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from hpn.testbed.kernel.rtnetlink.rtnl import RT_TABLE_MAIN
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, RouteEvent
from hpn.testbed.routing.pathcontrol.actions import Action, Move, Send
from hpn.testbed.routing.pathcontrol.destinations import HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import Connection, HostAgent
from hpn.testbed.routing.pathcontrol.tor_agent import TorAgent

MS = 1_000_000
PORTS = ("p0", "p1")
UPLINK = 999


@dataclass
class Noise:
    """What happens to each frame: probabilities, and the longest delay in ms."""

    loss: float = 0.0
    duplication: float = 0.0
    delay_ms: int = 1


def parity(sport: int, dst_ip: str, dport: int, active: Sequence[str]) -> str:
    """A LAG that carries even source ports by the first active member, odd ones by the second."""
    return active[sport % len(active)]


class PathSim:
    """Runs agents and frames in the order of simulated time."""

    def __init__(
        self, connections: Sequence[Sequence[Connection]], settings: HostSettings, noise: Noise, seed: int
    ) -> None:
        """``connections`` of each host."""
        self.now = MS
        self.noise = noise
        self.frames = 0
        self.moves: dict[int, list[Move]] = {host: [] for host in range(len(connections))}
        self.reachable = {(plane, c.dst_ip): True for plane in (0, 1) for each in connections for c in each}
        self._random = random.Random(seed)
        self._order = count()
        self._flying: list[tuple[int, int, str, Callable[[], None]]] = []
        self._epochs = [1, 1]
        self.tors = [self._tor(plane) for plane in (0, 1)]
        self.hosts = [HostAgent(f"h{n}", PORTS, settings, parity) for n in range(len(connections))]
        for host, own in enumerate(connections):
            self.by_host(host, self.hosts[host].set_active(PORTS, self.now))
            self.by_host(host, self.hosts[host].add(own, self.now))

    def _tor(self, plane: int) -> TorAgent:
        ports = {f"h{n}": 100 + n for n in range(len(self.moves))}
        made = TorAgent(ports, self._epochs[plane])
        routes = [_route(ip, gone=False) for (at, ip), there in self.reachable.items() if at == plane and there]
        self.by_tor(plane, made.resync([LinkEvent(0, UPLINK, "up", True, True, False)], routes, self.now))
        return made

    def route(self, plane: int, ips: Sequence[str], there: bool) -> None:
        """Destinations go or come back in one plane, in one reading of the ToR's monitor."""
        self.reachable.update({(plane, ip): there for ip in ips})
        self.by_tor(plane, self.tors[plane].on_events([_route(ip, gone=not there) for ip in ips], self.now))

    def restart(self, plane: int) -> None:
        """The ToR's agent starts again, the links stay."""
        self._epochs[plane] += 1
        self.tors[plane] = self._tor(plane)
        self.by_tor(plane, self.tors[plane].hello())

    def blink(self, host: int, plane: int) -> None:
        """A host's link loses carrier and has it back at once; what was on it is gone."""
        wire = f"{host}/{plane}"
        self._flying = [each for each in self._flying if each[2] != wire]
        heapq.heapify(self._flying)
        for up in (False, True):
            event = LinkEvent(0, 100 + host, f"h{host}", True, up, False)
            self.by_tor(plane, self.tors[plane].on_events([event], self.now))
            active = PORTS if up else (PORTS[1 - plane],)
            self.by_host(host, self.hosts[host].set_active(active, self.now))

    def by_tor(self, plane: int, sends: Sequence[Send]) -> None:
        """Put on the wire what a ToR sends."""
        for send in sends:
            host = int(send.port[1:])

            def heard(host: int = host, payload: bytes = send.payload) -> None:
                self.by_host(host, self.hosts[host].on_frame(PORTS[plane], payload, self.now))

            self._fly(f"{host}/{plane}", heard)

    def by_host(self, host: int, actions: Sequence[Action]) -> None:
        """Put on the wire what a host sends, and note how it moves."""
        for action in actions:
            if isinstance(action, Move):
                self.moves[host].append(action)
            elif isinstance(action, Send):
                plane = PORTS.index(action.port)

                def heard(plane: int = plane, payload: bytes = action.payload) -> None:
                    self.by_tor(plane, self.tors[plane].on_frame(f"h{host}", payload, self.now))

                self._fly(f"{host}/{plane}", heard)

    def _fly(self, wire: str, heard: Callable[[], None]) -> None:
        self.frames += 1
        copies = 0 if self._random.random() < self.noise.loss else 1 + (self._random.random() < self.noise.duplication)
        for _ in range(copies):
            at_ns = self.now + self._random.randint(1, self.noise.delay_ms * MS)
            heapq.heappush(self._flying, (at_ns, next(self._order), wire, heard))

    def run(self, for_ms: float) -> None:
        """Let time pass; fails when an agent's timer does not advance."""
        end_ns = self.now + int(for_ms * MS)
        for _ in range(1_000_000):
            due_ns = self._next()
            if due_ns is None or due_ns > end_ns:
                self.now = end_ns
                return
            self.now = max(self.now, due_ns)
            self._step()
        raise AssertionError("a timer spins")

    def _next(self) -> int | None:
        due = [host.deadline_ns for host in self.hosts] + [tor.deadline_ns for tor in self.tors]
        times = [at_ns for at_ns in due if at_ns is not None] + [each[0] for each in self._flying[:1]]
        return min(times, default=None)

    def _step(self) -> None:
        while self._flying and self._flying[0][0] <= self.now:
            heapq.heappop(self._flying)[3]()
        for host, agent in enumerate(self.hosts):
            if agent.deadline_ns is not None and agent.deadline_ns <= self.now:
                self.by_host(host, agent.on_timer(self.now))
        for plane, tor in enumerate(self.tors):
            if tor.deadline_ns is not None and tor.deadline_ns <= self.now:
                self.by_tor(plane, tor.on_timer(self.now))


def _route(ip: str, *, gone: bool) -> RouteEvent:
    return RouteEvent(0, f"{ip}/32", RT_TABLE_MAIN, 12, 1, (UPLINK,), gone, 32)
