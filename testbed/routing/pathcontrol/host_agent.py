"""The host's half of path control, pure: one agent per NIC moves queue pairs off a plane that lost their destination.

The one thing a host can choose is the UDP source port; the LAG's hash makes a member port of it, and in HPN a member
port is a plane. So a move is a new source port that the LAG carries through a port where the destination is reachable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from hpn.testbed.routing.pathcontrol.actions import Action, Move, Stuck
from hpn.testbed.routing.pathcontrol.destinations import Choice, Destinations, Follower, HostSettings, Update
from hpn.testbed.routing.pathcontrol.source_ports import SEARCH_LIMIT, SourcePorts
from hpn.testbed.routing.pathcontrol.tor_view import Standing

PortFor = Callable[[int, str, int, Sequence[str]], str]
"""The LAG's choice: (source port, destination IP, destination port, active member ports, never none) to member port."""

MOVE_BATCH = 128
"""Connections looked at in one go; the others follow after ``BATCH_GAP_NS``, so that others get their turn."""

BATCH_GAP_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Connection:
    """A queue pair's sending direction. ``home_sport`` is the source port it has while nothing is wrong."""

    id: int
    dst_ip: str
    dport: int
    home_sport: int


class HostAgent(Follower):
    """One NIC. What a port's ToR has not spoken of counts as reachable, so a ToR without path control changes nothing.

    The exception is a port that just came back to a ToR which does speak: its routes may lag behind its carrier, so
    for up to three refresh times nothing moves home through it before the ToR confirms.
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
        """``ports`` are the member ports in LAG order; ``seed`` makes the search for source ports reproducible.

        ``destinations``: those that another way of the same NIC asks about too; left out, its own.
        """
        super().__init__(destinations or Destinations(nic, ports, settings, seed))
        self._port_for = port_for
        self._connections: dict[int, Connection] = {}
        self._users: dict[str, dict[int, None]] = {}  # destination to its connections
        self._sports = SourcePorts(nic, seed)
        self._unplaced: dict[int, None] = {}  # connections to look at, in order
        self._stuck: set[int] = set()  # connections that no source port was found for, and that was told
        self._place_ns = 0

    @property
    def deadline_ns(self) -> int | None:
        """When ``on_timer`` wants to be called; None for never."""
        due_ns = self._destinations.deadline_ns
        return min(due_ns, self._place_ns) if due_ns is not None and self._unplaced else due_ns

    @property
    def state_size(self) -> int:
        """Words, records of losses and connections in memory."""
        return self._destinations.size + len(self._connections)

    def sport_of(self, connection: int) -> int:
        """Current source port of a connection."""
        return self._sports[connection]

    def standing(self, port: str, dst_ip: str, now_ns: int) -> Standing:
        """How good a member port is for a destination, with damping."""
        return self._destinations.standing(port, dst_ip, now_ns)

    def add(self, connections: Iterable[Connection], now_ns: int) -> list[Action]:
        """New connections, at their home source ports."""
        fresh = []
        for connection in connections:
            if connection.dst_ip not in self._users:
                fresh.append(connection.dst_ip)
            self._connections[connection.id] = connection
            self._users.setdefault(connection.dst_ip, {})[connection.id] = None
            self._sports.add(connection.id, connection.home_sport)
            self._unplaced[connection.id] = None
        return [*self._destinations.care_for(fresh, now_ns), *self._place(now_ns)]

    def remove(self, connections: Iterable[int]) -> None:
        """Connections that are done; the ToRs forget their destinations by themselves."""
        for done in [self._connections.pop(number) for number in connections if number in self._connections]:
            self._sports.remove(done.id)
            self._unplaced.pop(done.id, None)
            self._stuck.discard(done.id)
            users = self._users[done.dst_ip]
            del users[done.id]
            if not users:
                del self._users[done.dst_ip]
                self._destinations.give_up(done.dst_ip)

    def look_at_all(self, now_ns: int) -> list[Action]:
        """Place every connection anew."""
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
        """Look at no more than a batch of the unplaced connections."""
        if not self._destinations.active:
            self._unplaced.clear()
        found: list[Action] = []
        choices: dict[str, Choice] = {}
        for number in list(islice(self._unplaced, MOVE_BATCH)):
            del self._unplaced[number]
            connection = self._connections[number]
            if connection.dst_ip not in choices:
                choices[connection.dst_ip] = self._destinations.choice(connection.dst_ip, now_ns)
            now = self._sports[number]
            sport = self._choose(connection, now, choices[connection.dst_ip])
            if sport is None:
                found += self._tell_stuck(connection, now)
                continue
            self._stuck.discard(number)
            if sport != now:
                self._sports.change(number, sport)
                ports = self._map(connection, now), self._map(connection, sport)
                found.append(Move(number, connection.dst_ip, now, sport, *ports))
        self._place_ns = now_ns + BATCH_GAP_NS
        return found

    def _tell_stuck(self, connection: Connection, sport: int) -> list[Action]:
        """Say so once, until it is placed."""
        if connection.id in self._stuck:
            return []
        self._stuck.add(connection.id)
        port = self._map(connection, sport)
        return [Stuck(connection.id, connection.dst_ip, sport, port, SEARCH_LIMIT)]

    def _choose(self, connection: Connection, now: int, choice: Choice) -> int | None:
        """Home if that is good, else the present one if usable, else the first free good one, else a usable one.

        None where some port is usable, and no source port was found for any.
        """
        home = connection.home_sport
        if self._map(connection, home) in choice.good:
            return home
        if not choice.usable or self._map(connection, now) in choice.usable:
            return now
        tries = self._sports.candidates(connection.id)
        return next((sport for sport in (home, *tries) if self._map(connection, sport) in choice.best), None)

    def _map(self, connection: Connection, sport: int) -> str:
        return self._port_for(sport, connection.dst_ip, connection.dport, self._destinations.active)
