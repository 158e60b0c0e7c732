"""Reachability of destinations as the ToRs behind a NIC's ports report it, pure: interest, belief, port quality.

Changes when requests to ToRs, or trust in their reports, change. Reactions to a lost destination are in its followers:
``host_agent`` gives queue pairs other source ports, ``steering`` makes the LAG use another port.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hpn.testbed.routing.pathcontrol.actions import Action, Hold, Reachability, Send
from hpn.testbed.routing.pathcontrol.damping import Damper
from hpn.testbed.routing.pathcontrol.message import LIFETIME_REFRESHES, Reach, decode, encode_interest
from hpn.testbed.routing.pathcontrol.source_ports import digest
from hpn.testbed.routing.pathcontrol.tor_view import Heard, Standing, TorView

_ASKS_A_REFRESH = 8
"""Maximum number of full repeat requests to a ToR per refresh time, caused by missing frames."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Times in ms, as in ``PathControlSpec``."""

    refresh_ms: int = 500
    hold_ms: int = 1000
    hold_max_ms: int = 16_000


@dataclass(frozen=True, slots=True)
class Choice:
    """Active ports for one destination."""

    good: frozenset[str]
    usable: frozenset[str]  # GOOD ones included

    @property
    def best(self) -> frozenset[str]:
        """Good ports, or the usable ones if none is good; empty when there is nothing to choose."""
        return self.good or self.usable


@dataclass(frozen=True, slots=True)
class Update:
    """Result of a frame or of time passing: actions to send and report, and destinations to examine again."""

    actions: list[Action]
    touched: tuple[str, ...] = ()  # destinations whose standing may have changed
    doubts_ended: bool = False  # True: the standing of every destination may have changed
    there: tuple[str, ...] = ()  # destinations that the ToR has, requested or not


class Destinations:
    """Destinations of interest to one NIC, as reported by the ToRs behind its ports.

    Without a report from a port's ToR a destination counts as reachable, so a ToR without path control changes nothing.
    The exception is a port that just came back to a ToR with path control. Its routes may lag behind its carrier, so
    for up to three refresh times a destination counts as lost until the ToR confirms it.
    """

    def __init__(
        self, nic: str, ports: Sequence[str], settings: HostSettings, seed: int = 0, also: Sequence[str] = ()
    ) -> None:
        """Start without interest; ``ports`` are the member ports in LAG order, ``also`` extra requests per round."""
        self.active: tuple[str, ...] = ()
        self._ports = tuple(ports)
        self._refresh_ms = settings.refresh_ms
        self._refresh_ns = settings.refresh_ms * 1_000_000
        self._views = {port: TorView(LIFETIME_REFRESHES * self._refresh_ns) for port in ports}
        self._damper = Damper(settings.hold_ms, settings.hold_max_ms)
        self._wanted: dict[str, int] = {}  # number of interested parties
        self._also = tuple(also)
        self._phase = digest(seed, nic, "phase")
        self._next_refresh_ns: int | None = None

    @property
    def deadline_ns(self) -> int | None:
        """Next time for ``on_timer``; None for never."""
        if self._next_refresh_ns is None:
            return None
        views = [self._views[port] for port in self.active]
        times = [self._next_refresh_ns, *(view.doubt_until_ns for view in views if view.doubt_until_ns)]
        times += [view.ask_ns for view in views if view.ask_ns is not None]
        held_ns = self._damper.deadline_ns
        return min(times if held_ns is None else [*times, held_ns])

    @property
    def size(self) -> int:
        """Number of reports and loss records in memory."""
        return sum(view.size for view in self._views.values()) + self._damper.size

    def standing(self, port: str, ip: str, now_ns: int) -> Standing:
        """Return how good a member port is for a destination, with damping."""
        found = self._views[port].standing(ip, now_ns)
        return Standing.USABLE if found is Standing.GOOD and self._damper.holds((port, ip)) else found

    def choice(self, ip: str, now_ns: int) -> Choice:
        """Return the active ports that are good, and usable, for a destination."""
        standings = {port: self.standing(port, ip, now_ns) for port in self.active}
        good = frozenset(port for port, found in standings.items() if found is Standing.GOOD)
        return Choice(good, frozenset(port for port, found in standings.items() if found is not Standing.BAD))

    def care_for(self, ips: Iterable[str], now_ns: int) -> list[Send]:
        """Request reports about these from every ToR from now on; nothing is sent for those requested already.

        Each interested party calls this once per destination, and ``give_up`` once.
        """
        fresh = []
        for ip in ips:
            if ip not in self._wanted:
                fresh.append(ip)
            self._wanted[ip] = self._wanted.get(ip, 0) + 1
        if self._wanted:
            self.begin(now_ns)
        return self._ask(self.active, fresh)

    def begin(self, now_ns: int) -> None:
        """Schedule a first round of requests within a refresh time, unless rounds are running."""
        if self._next_refresh_ns is None:
            self._next_refresh_ns = now_ns + self._phase_ns()

    def give_up(self, ip: str) -> None:
        """Remove one interested party. The ToRs' interest expires by itself; rounds end with the last party."""
        self._wanted[ip] -= 1
        if self._wanted[ip]:
            return
        del self._wanted[ip]
        for port, view in self._views.items():
            view.forget(ip)
            self._damper.forget((port, ip))
        if not self._wanted and not self._also:
            self._next_refresh_ns = None

    def set_active(self, ports: Iterable[str], now_ns: int) -> list[Send]:
        """Handle a change of the LAG's collecting and distributing ports: send requests to the new ones."""
        chosen = set(ports)
        came = [port for port in self._ports if port in chosen and port not in self.active]
        self.active = tuple(port for port in self._ports if port in chosen)
        for port in came:
            self._views[port].reset(now_ns)
        return [send for port in came for send in self._ask_all(port, now_ns)]

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> Update | None:
        """Handle a frame from the ToR behind ``port``; None for anything but a REACH of its current agent."""
        message = decode(payload)
        if not isinstance(message, Reach) or port not in self.active:
            return None
        view = self._views[port]
        heard = view.hear(message, self._wanted, now_ns)
        if heard is None:
            return None
        if heard.missed and view.ask_ns is None:
            view.ask_ns = self._ask_again_at(view, now_ns, restarted=not message.states)
        if view.doubt_until_ns and view.has_spoken_of(self._wanted):
            view.doubt_until_ns = 0
        news = self._note(port, heard, now_ns)
        there = tuple(ip for ip, reachable in message.states if reachable)
        return Update([*self._asks_due(now_ns), *news], tuple(heard.changed), there=there)

    def on_timer(self, now_ns: int) -> Update:
        """Refresh the interest; end doubts and holds that are due."""
        ended = False
        for view in self._views.values():
            if 0 < view.doubt_until_ns <= now_ns:
                view.doubt_until_ns, ended = 0, True
        touched = [ip for _, ip in self._damper.release(now_ns)]
        if self._next_refresh_ns is None or self._next_refresh_ns > now_ns:
            return Update([*self._asks_due(now_ns)], tuple(touched), ended)
        self._next_refresh_ns = now_ns + self._refresh_ns
        self._damper.expire(now_ns)
        touched += [ip for port in self.active for ip in self._views[port].expire(now_ns)]
        asks = [send for port in self.active for send in self._ask_all(port, now_ns)]
        return Update([*asks], tuple(touched), ended)

    def _ask_again_at(self, view: TorView, now_ns: int, *, restarted: bool) -> int:
        """Return the time of a repeat request: at once, but rate-limited, and with jitter after a ToR's restart."""
        gap_ns = self._refresh_ns // _ASKS_A_REFRESH
        soon_ns = now_ns + (self._phase_ns() % gap_ns if restarted else 0)
        return soon_ns if view.asked_ns is None else max(soon_ns, view.asked_ns + gap_ns)

    def _asks_due(self, now_ns: int) -> list[Send]:
        views = [(port, self._views[port].ask_ns) for port in self.active]
        due = [port for port, ask_ns in views if ask_ns is not None and ask_ns <= now_ns]
        return [send for port in due for send in self._ask_all(port, now_ns)]

    def _ask_all(self, port: str, now_ns: int) -> list[Send]:
        self._views[port].asked_ns, self._views[port].ask_ns = now_ns, None
        return self._ask((port,), [*self._also, *self._wanted])

    def _ask(self, ports: Iterable[str], destinations: Sequence[str]) -> list[Send]:
        frames = encode_interest(self._refresh_ms, destinations)
        return [Send(port, frame) for port in ports for frame in frames]

    def _note(self, port: str, heard: Heard, now_ns: int) -> list[Action]:
        """Return reports of the changes."""
        news: list[Action] = []
        for ip, reachable in heard.changed.items():
            news.append(Reachability(ip, port, reachable))
            if not reachable:
                self._damper.lost((port, ip), now_ns)
            elif hold_ns := self._damper.back((port, ip), now_ns):
                news.append(Hold(ip, port, hold_ns))
        return news

    def _phase_ns(self) -> int:
        """Return the delay of the first refresh: half to a whole refresh time, so that the NICs of a lab are spread."""
        return self._refresh_ns // 2 + self._phase % (self._refresh_ns // 2)


class Follower(ABC):
    """Agent of one NIC that reacts to changes of its ``destinations``."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations

    @property
    def deadline_ns(self) -> int | None:
        """Next time for ``on_timer``; None for never."""
        return self._destinations.deadline_ns

    def set_active(self, ports: Iterable[str], now_ns: int) -> list[Action]:
        """Handle a change of the LAG's collecting and distributing ports: send requests, and examine all again."""
        return [*self._destinations.set_active(ports, now_ns), *self.look_at_all(now_ns)]

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> list[Action]:
        """Handle a frame from the ToR behind ``port``. Anything but a REACH of its current agent is ignored."""
        heard = self._destinations.on_frame(port, payload, now_ns)
        return [] if heard is None else [*heard.actions, *self.follow(heard, now_ns)]

    def on_timer(self, now_ns: int) -> list[Action]:
        """Refresh the interest, end doubts and holds that are due, and continue pending work."""
        update = self._destinations.on_timer(now_ns)
        return [*update.actions, *self.follow(update, now_ns)]

    @abstractmethod
    def look_at_all(self, now_ns: int) -> list[Action]:
        """Return the actions for a change of all ports."""

    @abstractmethod
    def follow(self, update: Update, now_ns: int) -> list[Action]:
        """Return the actions for an update, besides its own."""
