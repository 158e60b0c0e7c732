"""The host's half of path control, pure: one agent per NIC moves queue pairs off a plane that lost their destination.

The one thing a host can choose is the UDP source port; the LAG's hash makes a member port of it, and in HPN a member
port is a plane. So a move is a new source port that the LAG carries through a port where the destination is reachable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from testbed.routing.pathcontrol.actions import Action, Hold, Move, Reachability, Send
from testbed.routing.pathcontrol.damping import Damper
from testbed.routing.pathcontrol.message import LIFETIME_REFRESHES, Reach, decode, encode_interest
from testbed.routing.pathcontrol.source_ports import SourcePorts
from testbed.routing.pathcontrol.tor_view import Standing, TorView

PortFor = Callable[[int, str, int, Sequence[str]], str]
"""The LAG's choice: (source port, destination IP, destination port, active member ports, never none) to member port."""

MOVE_BATCH = 128
"""Connections looked at in one go; the others follow after ``BATCH_GAP_NS``, so that others get their turn."""

BATCH_GAP_NS = 1_000_000

_ASKS_A_REFRESH = 8
"""At most so often is a ToR asked again about everything because of missing frames."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A queue pair's sending direction. ``home_sport`` is the source port it has while nothing is wrong."""

    id: int
    dst_ip: str
    dport: int
    home_sport: int


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Times in ms, as in ``PathControlSpec``."""

    refresh_ms: int = 500
    hold_ms: int = 1000
    hold_max_ms: int = 16_000


@dataclass(frozen=True, slots=True)
class _Choice:
    """The active ports for one destination."""

    good: frozenset[str]
    usable: frozenset[str]  # GOOD ones included


class HostAgent:
    """One NIC. What a port's ToR has not spoken of counts as reachable, so a ToR without path control changes nothing.

    The exception is a port that just came back to a ToR which does speak: its routes may lag behind its carrier, so
    for up to three refresh times nothing moves home through it before the ToR confirms.
    """

    def __init__(
        self, nic: str, ports: Sequence[str], settings: HostSettings, port_for: PortFor, seed: int = 0
    ) -> None:
        """``ports`` are the member ports in LAG order; ``seed`` makes the search for source ports reproducible."""
        self._ports = tuple(ports)
        self._refresh_ms = settings.refresh_ms
        self._refresh_ns = settings.refresh_ms * 1_000_000
        self._port_for = port_for
        self._views = {port: TorView(LIFETIME_REFRESHES * self._refresh_ns) for port in ports}
        self._damper = Damper(settings.hold_ms, settings.hold_max_ms)
        self._active: tuple[str, ...] = ()
        self._connections: dict[int, Connection] = {}
        self._users: dict[str, dict[int, None]] = {}  # destination to its connections
        self._sports = SourcePorts(nic, seed)
        self._unplaced: dict[int, None] = {}  # connections to look at, in order
        self._place_ns = 0
        self._next_refresh_ns: int | None = None

    @property
    def deadline_ns(self) -> int | None:
        """When ``on_timer`` wants to be called; None for never."""
        if self._next_refresh_ns is None:
            return None
        views = [self._views[port] for port in self._active]
        times = [self._next_refresh_ns, *(view.doubt_until_ns for view in views if view.doubt_until_ns)]
        times += [view.ask_ns for view in views if view.ask_ns is not None]
        times += [self._place_ns] if self._unplaced else []
        held_ns = self._damper.deadline_ns
        return min(times if held_ns is None else [*times, held_ns])

    @property
    def state_size(self) -> int:
        """Words, records of losses and connections in memory."""
        return sum(view.size for view in self._views.values()) + self._damper.size + len(self._connections)

    def sport_of(self, connection: int) -> int:
        """Current source port of a connection."""
        return self._sports[connection]

    def standing(self, port: str, dst_ip: str, now_ns: int) -> Standing:
        """How good a member port is for a destination, with damping."""
        found = self._views[port].standing(dst_ip, now_ns)
        return Standing.USABLE if found is Standing.GOOD and self._damper.holds((port, dst_ip)) else found

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
        if self._next_refresh_ns is None and self._connections:
            self._next_refresh_ns = now_ns + self._phase_ns()
        return [*self._ask(self._active, fresh), *self._place(now_ns)]

    def remove(self, connections: Iterable[int]) -> None:
        """Connections that are done; the ToRs forget their destinations by themselves."""
        for done in [self._connections.pop(number) for number in connections if number in self._connections]:
            self._sports.remove(done.id)
            self._unplaced.pop(done.id, None)
            users = self._users[done.dst_ip]
            del users[done.id]
            if not users:
                self._forget(done.dst_ip)
        if not self._connections:
            self._next_refresh_ns = None

    def set_active(self, ports: Iterable[str], now_ns: int) -> list[Action]:
        """The LAG's collecting and distributing ports changed: ask the new ones, place every connection anew."""
        chosen = set(ports)
        came = [port for port in self._ports if port in chosen and port not in self._active]
        self._active = tuple(port for port in self._ports if port in chosen)
        for port in came:
            self._views[port].reset(now_ns)
        self._unplaced.update(dict.fromkeys(self._connections))
        asks = [send for port in came for send in self._ask_all(port, now_ns)]
        return [*asks, *self._place(now_ns)]

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> list[Action]:
        """A frame from the ToR behind ``port``. Anything but a REACH of its present agent is ignored."""
        message = decode(payload)
        if not isinstance(message, Reach) or port not in self._active:
            return []
        view = self._views[port]
        heard = view.hear(message, self._users, now_ns)
        if heard is None:
            return []
        if heard.missed and view.ask_ns is None:
            view.ask_ns = self._ask_again_at(view, now_ns, restarted=not message.states)
        if view.doubt_until_ns and view.has_spoken_of(self._users):
            view.doubt_until_ns = 0
        news = self._note(port, heard.changed, now_ns)
        return [*self._asks_due(now_ns), *news, *self._place(now_ns)]

    def on_timer(self, now_ns: int) -> list[Action]:
        """Refresh the interest; let doubts and holds end; go on placing."""
        for view in self._views.values():
            if 0 < view.doubt_until_ns <= now_ns:
                view.doubt_until_ns = 0
                self._unplaced.update(dict.fromkeys(self._connections))
        for _, ip in self._damper.release(now_ns):
            self._unplaced.update(self._users.get(ip, {}))
        asks = self._refresh(now_ns) if self._is_refresh_due(now_ns) else self._asks_due(now_ns)
        return [*asks, *self._place(now_ns)]

    def _is_refresh_due(self, now_ns: int) -> bool:
        return self._next_refresh_ns is not None and self._next_refresh_ns <= now_ns

    def _refresh(self, now_ns: int) -> list[Send]:
        self._next_refresh_ns = now_ns + self._refresh_ns
        self._damper.expire(now_ns)
        for port in self._active:
            for ip in self._views[port].expire(now_ns):
                self._unplaced.update(self._users.get(ip, {}))
        return [send for port in self._active for send in self._ask_all(port, now_ns)]

    def _ask_again_at(self, view: TorView, now_ns: int, *, restarted: bool) -> int:
        """At once, but not too often; a ToR that has just started is not asked by all of its hosts in chorus."""
        gap_ns = self._refresh_ns // _ASKS_A_REFRESH
        soon_ns = now_ns + (self._phase_ns() % gap_ns if restarted else 0)
        return soon_ns if view.asked_ns is None else max(soon_ns, view.asked_ns + gap_ns)

    def _asks_due(self, now_ns: int) -> list[Send]:
        views = [(port, self._views[port].ask_ns) for port in self._active]
        due = [port for port, ask_ns in views if ask_ns is not None and ask_ns <= now_ns]
        return [send for port in due for send in self._ask_all(port, now_ns)]

    def _ask_all(self, port: str, now_ns: int) -> list[Send]:
        self._views[port].asked_ns, self._views[port].ask_ns = now_ns, None
        return self._ask((port,), list(self._users))

    def _ask(self, ports: Iterable[str], destinations: Sequence[str]) -> list[Send]:
        frames = encode_interest(self._refresh_ms, destinations)
        return [Send(port, frame) for port in ports for frame in frames]

    def _note(self, port: str, changed: dict[str, bool], now_ns: int) -> list[Action]:
        """Report what is news, and have the connections it concerns placed."""
        news: list[Action] = []
        for ip, reachable in changed.items():
            news.append(Reachability(ip, port, reachable))
            if not reachable:
                self._damper.lost((port, ip), now_ns)
            elif hold_ns := self._damper.back((port, ip), now_ns):
                news.append(Hold(ip, port, hold_ns))
            self._unplaced.update(self._users[ip])
        return news

    def _place(self, now_ns: int) -> list[Action]:
        """Look at no more than a batch of the unplaced connections."""
        if not self._active:
            self._unplaced.clear()
        moves: list[Action] = []
        choices: dict[str, _Choice] = {}
        for number in list(islice(self._unplaced, MOVE_BATCH)):
            del self._unplaced[number]
            connection = self._connections[number]
            if connection.dst_ip not in choices:
                choices[connection.dst_ip] = self._choice(connection.dst_ip, now_ns)
            now = self._sports[number]
            sport = self._choose(connection, now, choices[connection.dst_ip])
            if sport != now:
                self._sports.change(number, sport)
                ports = self._map(connection, now), self._map(connection, sport)
                moves.append(Move(number, connection.dst_ip, now, sport, *ports))
        self._place_ns = now_ns + BATCH_GAP_NS
        return moves

    def _choice(self, ip: str, now_ns: int) -> _Choice:
        standings = {port: self.standing(port, ip, now_ns) for port in self._active}
        good = frozenset(port for port, found in standings.items() if found is Standing.GOOD)
        return _Choice(good, frozenset(port for port, found in standings.items() if found is not Standing.BAD))

    def _choose(self, connection: Connection, now: int, choice: _Choice) -> int:
        """Home if that is good, else the present one if usable, else the first free good one, else a usable one."""
        home = connection.home_sport
        if self._map(connection, home) in choice.good:
            return home
        if not choice.usable or self._map(connection, now) in choice.usable:
            return now
        wanted = choice.good or choice.usable
        tries = self._sports.candidates(connection.id)
        return next((sport for sport in (home, *tries) if self._map(connection, sport) in wanted), now)

    def _map(self, connection: Connection, sport: int) -> str:
        return self._port_for(sport, connection.dst_ip, connection.dport, self._active)

    def _forget(self, ip: str) -> None:
        del self._users[ip]
        for port, view in self._views.items():
            view.forget(ip)
            self._damper.forget((port, ip))

    def _phase_ns(self) -> int:
        """First refresh: half to a whole refresh time away, so that the NICs of a lab do not speak in chorus."""
        return self._refresh_ns // 2 + self._sports.digest("phase") % (self._refresh_ns // 2)
