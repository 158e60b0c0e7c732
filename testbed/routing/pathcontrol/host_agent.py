"""The host's half of path control, pure: one agent per NIC moves queue pairs off a plane that lost their destination.

The one thing a host can choose is the UDP source port; the LAG's hash makes a member port of it, and in HPN a member
port is a plane. So a move is a new source port that the LAG carries through a port where the destination is reachable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice

from testbed.routing.pathcontrol.actions import Action, Move, Reachability, Send
from testbed.routing.pathcontrol.message import LIFETIME_REFRESHES, Reach, decode, encode_interest

FIRST_SPORT, SPORTS = 0xC000, 0x4000
"""RoCEv2 source ports (IBTA annex A17): 0xC000 to 0xFFFF."""

SEARCH_LIMIT = 512
"""Free source ports tried per move: with two ports every other one fits, unless the LAG does not hash ports at all."""

PortFor = Callable[[int, str, int, Sequence[str]], str]
"""The LAG's choice: (source port, destination IP, destination port, active member ports, never none) to member port."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A queue pair's sending direction. ``home_sport`` is the source port it has while nothing is wrong."""

    id: int
    dst_ip: str
    dport: int
    home_sport: int


@dataclass(slots=True)
class _PortView:
    """What the ToR behind one member port has said since the port became active."""

    speaks: bool = False  # this ToR has path control; survives a loss of carrier
    generation: int = -1
    reachable: dict[str, bool] = field(default_factory=dict)
    doubt_until_ns: int = 0  # until then a destination it has not spoken of counts as unreachable


class HostAgent:
    """One NIC. What a port's ToR has not spoken of counts as reachable, so a ToR without path control changes nothing.

    The exception is a port that just came back to a ToR which does speak: its routes may lag behind its carrier, so
    for up to three refresh times nothing moves home through it before the ToR confirms.
    """

    def __init__(self, nic: str, ports: Sequence[str], refresh_ms: int, port_for: PortFor, seed: int = 0) -> None:
        """``ports`` are the member ports in LAG order; ``seed`` makes the search for source ports reproducible."""
        self._nic = nic
        self._ports = tuple(ports)
        self._refresh_ms = refresh_ms
        self._port_for = port_for
        self._seed = seed
        self._views = {port: _PortView() for port in ports}
        self._active: tuple[str, ...] = ()
        self._connections: dict[int, Connection] = {}
        self._sports: dict[int, int] = {}  # connection to its current source port
        self._taken: Counter[int] = Counter()  # source ports in use or to come home to
        self._refresh_ns: int | None = None

    @property
    def deadline_ns(self) -> int | None:
        """When ``on_timer`` wants to be called; None for never."""
        if self._refresh_ns is None:
            return None
        doubts = (view.doubt_until_ns for port, view in self._views.items() if port in self._active)
        return min((self._refresh_ns, *(at_ns for at_ns in doubts if at_ns)))

    def sport_of(self, connection: int) -> int:
        """Current source port of a connection."""
        return self._sports[connection]

    def add(self, connections: Iterable[Connection], now_ns: int) -> list[Action]:
        """New connections, at their home source ports."""
        added = list(connections)
        known = self._destinations()
        for connection in added:
            self._connections[connection.id] = connection
            self._sports[connection.id] = connection.home_sport
            self._taken[connection.home_sport] += 2
        if self._refresh_ns is None and self._connections:
            self._refresh_ns = now_ns + self._phase_ns()
        fresh = [ip for ip in dict.fromkeys(c.dst_ip for c in added) if ip not in known]
        return [*self._ask(self._active, fresh), *self._place(added, now_ns)]

    def remove(self, connections: Iterable[int]) -> None:
        """Connections that are done; the ToRs forget their destinations by themselves."""
        for done in [self._connections.pop(number) for number in connections if number in self._connections]:
            self._taken[done.home_sport] -= 1
            self._taken[self._sports.pop(done.id)] -= 1
        wanted = self._destinations()
        for view in self._views.values():
            view.reachable = {ip: state for ip, state in view.reachable.items() if ip in wanted}
        if not self._connections:
            self._refresh_ns = None

    def set_active(self, ports: Iterable[str], now_ns: int) -> list[Action]:
        """The LAG's collecting and distributing ports changed: ask the new ones, place every connection anew."""
        chosen = set(ports)
        came = [port for port in self._ports if port in chosen and port not in self._active]
        self._active = tuple(port for port in self._ports if port in chosen)
        for port in came:
            view = self._views[port]
            view.generation, view.reachable = -1, {}
            view.doubt_until_ns = now_ns + self._lifetime_ns() if view.speaks else 0
        return [*self._ask(came, self._destinations()), *self._place(self._connections.values(), now_ns)]

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> list[Action]:
        """A frame from the ToR behind ``port``. Anything but a REACH no older than the last is ignored."""
        message = decode(payload)
        view = self._views.get(port)
        if not isinstance(message, Reach) or view is None or port not in self._active:
            return []
        if message.generation < view.generation:
            return []
        view.speaks, view.generation = True, message.generation
        wanted = self._destinations()
        changed: dict[str, bool] = {}
        for ip, reachable in message.states:
            if ip in wanted and view.reachable.get(ip) != reachable:
                view.reachable[ip] = changed[ip] = reachable
        if wanted.keys() <= view.reachable.keys():
            view.doubt_until_ns = 0
        return self._react(port, changed, now_ns)

    def on_timer(self, now_ns: int) -> list[Action]:
        """Refresh the interest; let doubts end."""
        actions: list[Action] = []
        ended = [v for v in self._views.values() if 0 < v.doubt_until_ns <= now_ns]
        for view in ended:
            view.doubt_until_ns = 0
        if self._refresh_ns is not None and self._refresh_ns <= now_ns:
            self._refresh_ns = now_ns + self._refresh_ms * 1_000_000
            actions += self._ask(self._active, self._destinations())
        return [*actions, *(self._place(self._connections.values(), now_ns) if ended else ())]

    def _react(self, port: str, changed: dict[str, bool], now_ns: int) -> list[Action]:
        """Report what is news, then place the connections it concerns."""
        if not changed:
            return []
        news: list[Action] = [Reachability(ip, port, state) for ip, state in changed.items()]
        concerned = [c for c in self._connections.values() if c.dst_ip in changed]
        return [*news, *self._place(concerned, now_ns)]

    def _place(self, connections: Iterable[Connection], now_ns: int) -> list[Action]:
        moves: list[Action] = []
        for connection in connections if self._active else ():
            now = self._sports[connection.id]
            sport = self._choose(connection, now, now_ns)
            if sport != now:
                self._sports[connection.id] = sport
                self._taken[now] -= 1
                self._taken[sport] += 1
                ports = self._map(connection, now), self._map(connection, sport)
                moves.append(Move(connection.id, connection.dst_ip, now, sport, *ports))
        return moves

    def _choose(self, connection: Connection, now: int, now_ns: int) -> int:
        """Home if that works, else the present one if that works, else the first free one that does, else no change."""
        good = {port for port in self._active if self._reaches(port, connection.dst_ip, now_ns)}
        for sport in (connection.home_sport, now):
            if self._map(connection, sport) in good:
                return sport
        if not good:
            return now
        free = (sport for sport in self._sequence(connection) if not self._taken[sport])
        tried = islice(free, SEARCH_LIMIT)
        return next((sport for sport in tried if self._map(connection, sport) in good), now)

    def _reaches(self, port: str, ip: str, now_ns: int) -> bool:
        view = self._views[port]
        return view.reachable.get(ip, view.doubt_until_ns <= now_ns)

    def _map(self, connection: Connection, sport: int) -> str:
        return self._port_for(sport, connection.dst_ip, connection.dport, self._active)

    def _sequence(self, connection: Connection) -> Iterator[int]:
        """Every RoCEv2 source port once, in an order of the connection's own."""
        digest = self._digest(f"{connection.id}")
        start, stride = digest & 0xFFFF, digest >> 16 & 0xFFFF | 1
        return (FIRST_SPORT + (start + step * stride) % SPORTS for step in range(SPORTS))

    def _digest(self, text: str) -> int:
        return int.from_bytes(blake2b(f"{self._seed}/{self._nic}/{text}".encode(), digest_size=4).digest(), "big")

    def _phase_ns(self) -> int:
        """First refresh: half to a whole refresh time away, so that the NICs of a lab do not speak in chorus."""
        refresh_ns = self._refresh_ms * 1_000_000
        return refresh_ns // 2 + self._digest("phase") % (refresh_ns // 2)

    def _lifetime_ns(self) -> int:
        return LIFETIME_REFRESHES * self._refresh_ms * 1_000_000

    def _destinations(self) -> dict[str, None]:
        return dict.fromkeys(connection.dst_ip for connection in self._connections.values())

    def _ask(self, ports: Iterable[str], destinations: Iterable[str]) -> list[Send]:
        frames = encode_interest(self._refresh_ms, list(destinations))
        return [Send(port, frame) for port in ports for frame in frames]
