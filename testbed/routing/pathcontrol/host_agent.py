"""The host's half of path control, pure: one agent per NIC moves queue pairs off a plane that lost their destination.

A host can only choose the UDP source port. The LAG's hash maps it to a member port, which in HPN is a plane. So a move
is a new source port that the LAG sends through a port where the destination is reachable. Where the adapter binds queue
pairs to ports, no source port moves them; ``rebind`` has the agent that can.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from hpn.testbed.routing.pathcontrol.actions import Action, Move, Stuck
from hpn.testbed.routing.pathcontrol.destinations import Choice, Destinations, Follower, HostSettings, Update
from hpn.testbed.routing.pathcontrol.source_ports import SEARCH_LIMIT, SourcePorts
from hpn.testbed.routing.pathcontrol.tor_view import Standing

Port = TypeVar("Port")

PortFor = Callable[[int, str, int, Sequence[str]], str]
"""The LAG's choice: (source port, destination IP, destination port, active member ports, not empty) to member port."""

MOVE_BATCH = 128
"""Number of connections processed at once; the rest follow after ``BATCH_GAP_NS``, to yield to other work."""

BATCH_GAP_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Connection:
    """A queue pair's sending direction. ``home_sport`` is its source port in normal operation.

    ``bound_to``: member port that its adapter bound it to (queue affinity); None: the LAG hashes it.
    """

    id: int
    dst_ip: str
    dport: int
    home_sport: int
    bound_to: str | None = None


def port_instead(port: Port, ports: Sequence[Port], active: Sequence[Port]) -> Port:
    """Return the port that an adapter uses for queue pairs bound to ``port``: the next active one in LAG order.

    Mlx5 draws one of the active ports; with two ports there is one. ``port`` itself if none is active, as mlx5 does.
    """
    at = ports.index(port)
    return next((each for each in (*ports[at:], *ports[:at]) if each in active), port)


class QueuePairAgent(Follower):
    """Agent of one NIC that places queue pairs: in batches, and again when their destination's standing changes."""

    def __init__(self, destinations: Destinations) -> None:
        super().__init__(destinations)
        self._connections: dict[int, Connection] = {}
        self._users: dict[str, dict[int, None]] = {}  # destination to its connections
        self._unplaced: dict[int, None] = {}  # connections to examine, in order
        self._place_ns = 0

    @property
    def deadline_ns(self) -> int | None:
        """Next time for ``on_timer``; None for never."""
        due_ns = self._destinations.deadline_ns
        return min(due_ns, self._place_ns) if due_ns is not None and self._unplaced else due_ns

    @property
    def state_size(self) -> int:
        """Number of reports, loss records and connections in memory."""
        return self._destinations.size + len(self._connections)

    def standing(self, port: str, dst_ip: str, now_ns: int) -> Standing:
        """Return how good a member port is for a destination, with damping."""
        return self._destinations.standing(port, dst_ip, now_ns)

    def add(self, connections: Iterable[Connection], now_ns: int) -> list[Action]:
        """Add connections, as they are in normal operation."""
        fresh = []
        for connection in connections:
            if connection.dst_ip not in self._users:
                fresh.append(connection.dst_ip)
            self._connections[connection.id] = connection
            self._users.setdefault(connection.dst_ip, {})[connection.id] = None
            self._came(connection)
            self._unplaced[connection.id] = None
        return [*self._destinations.care_for(fresh, now_ns), *self._place(now_ns)]

    def remove(self, connections: Iterable[int]) -> None:
        """Remove finished connections; the ToRs' interest in their destinations expires by itself."""
        for done in [self._connections.pop(number) for number in connections if number in self._connections]:
            self._went(done.id)
            self._unplaced.pop(done.id, None)
            users = self._users[done.dst_ip]
            del users[done.id]
            if not users:
                del self._users[done.dst_ip]
                self._destinations.give_up(done.dst_ip)

    def look_at_all(self, now_ns: int) -> list[Action]:
        """Place every connection again."""
        self._unplaced.update(dict.fromkeys(self._connections))
        return self._place(now_ns)

    def follow(self, update: Update, now_ns: int) -> list[Action]:
        """Place the connections that an update concerns."""
        if update.doubts_ended:
            self._unplaced.update(dict.fromkeys(self._connections))
        for ip in update.touched:
            self._unplaced.update(self._users.get(ip, {}))
        return self._place(now_ns)

    def _place(self, now_ns: int) -> list[Action]:
        """Place at most a batch of the unplaced connections."""
        if not self._destinations.active:
            self._unplaced.clear()
        found: list[Action] = []
        choices: dict[str, Choice] = {}
        for number in list(islice(self._unplaced, MOVE_BATCH)):
            del self._unplaced[number]
            connection = self._connections[number]
            if connection.dst_ip not in choices:
                choices[connection.dst_ip] = self._destinations.choice(connection.dst_ip, now_ns)
            found += self._settle(connection, choices[connection.dst_ip])
        self._place_ns = now_ns + BATCH_GAP_NS
        return found

    @abstractmethod
    def _settle(self, connection: Connection, choice: Choice) -> list[Action]:
        """Return the actions for a connection, given the ports that are good for its destination."""

    @abstractmethod
    def _came(self, connection: Connection) -> None:
        """Note a connection that was added."""

    @abstractmethod
    def _went(self, connection: int) -> None:
        """Forget a connection that was removed."""


class HostAgent(QueuePairAgent):
    """Agent of one NIC. Destinations without a ToR's report count as reachable: no path control, no change.

    The exception is a port that just came back to a ToR with path control. Its routes may lag behind its carrier, so
    for up to three refresh times nothing reverts to it until the ToR confirms.
    """

    def __init__(
        self,
        nic: str,
        ports: Sequence[str],
        settings: HostSettings,
        port_for: PortFor,
        seed: int = 0,
        destinations: Destinations | None = None,
    ) -> None:
        """Start without connections; ``ports`` are the member ports in LAG order, ``seed`` makes searches reproducible.

        ``destinations``: shared with another agent of the same NIC; by default its own.
        """
        super().__init__(destinations or Destinations(nic, ports, settings, seed))
        self._ports = tuple(ports)
        self._port_for = port_for
        self._sports = SourcePorts(nic, seed)
        self._stuck: set[int] = set()  # connections reported as having no source port

    def sport_of(self, connection: int) -> int:
        """Return the current source port of a connection."""
        return self._sports[connection]

    def _came(self, connection: Connection) -> None:
        self._sports.add(connection.id, connection.home_sport)

    def _went(self, connection: int) -> None:
        self._sports.remove(connection)
        self._stuck.discard(connection)

    def _settle(self, connection: Connection, choice: Choice) -> list[Action]:
        number, now = connection.id, self._sports[connection.id]
        sport = self._choose(connection, now, choice)
        if sport is None:
            return self._tell_stuck(connection, now)
        self._stuck.discard(number)
        if sport == now:
            return []
        self._sports.change(number, sport)
        ports = self._map(connection, now), self._map(connection, sport)
        return [Move(number, connection.dst_ip, now, sport, *ports)]

    def _tell_stuck(self, connection: Connection, sport: int) -> list[Action]:
        """Report it once, until it is placed."""
        if connection.id in self._stuck:
            return []
        self._stuck.add(connection.id)
        tries = SEARCH_LIMIT if connection.bound_to is None else 0
        return [Stuck(connection.id, connection.dst_ip, sport, self._map(connection, sport), tries)]

    def _choose(self, connection: Connection, now: int, choice: Choice) -> int | None:
        """Return the home port if good, else the current one if usable, else a good free one, else any usable one.

        None if some member port is usable, but no source port leads there.
        """
        home = connection.home_sport
        if self._map(connection, home) in choice.good:
            return home
        if not choice.usable or self._map(connection, now) in choice.usable:
            return now
        if connection.bound_to is not None:
            return None
        tries = self._sports.candidates(connection.id)
        return next((sport for sport in (home, *tries) if self._map(connection, sport) in choice.best), None)

    def _map(self, connection: Connection, sport: int) -> str:
        active = self._destinations.active
        if connection.bound_to is not None:
            return port_instead(connection.bound_to, self._ports, active)
        return self._port_for(sport, connection.dst_ip, connection.dport, active)
