"""The ToR's half of path control, pure: the hosts' interests, the FIB's state, and the pending notices.

A destination is reachable here when the FIB has its /32 through an interface with carrier. The subnet route does not
count: it attracts and drops. The agent knows only kernel events, hence only results of BGP and ARP. Pending notices are
no queue of messages but the set of destinations whose state differs from the last notice to a port. So it never exceeds
the interests, and a change that is undone while it waits is never sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, NeighbourEvent, RouteEvent
from hpn.testbed.routing.pathcontrol.actions import Send
from hpn.testbed.routing.pathcontrol.fib import Fib
from hpn.testbed.routing.pathcontrol.message import (
    EPOCH_BITS,
    EVERYTHING,
    LIFETIME_REFRESHES,
    Interest,
    decode,
    encode_hello,
    encode_reach,
)

MAX_INTERESTS = 4096
"""Maximum of destinations one port may be interested in; more are ignored."""

ASKS_DEPTH, ASKS_PER_S = 64, 320
"""INTEREST frames per port answered in a burst, and per second: 4,096 destinations every 50 ms. More are ignored."""

BURST_FRAMES, BURST_NS = 64, 1_000_000
"""Limit on notices to all ports together: frames per interval; the rest follow."""


@dataclass(slots=True)
class _Port:
    """One access port: the interests of the host behind it, and the states sent to it."""

    number: int  # of the last frame to it
    wanted: dict[str, int] = field(default_factory=dict)  # address to expiry
    told: dict[str, bool] = field(default_factory=dict)  # the same addresses
    news: dict[str, bool] = field(default_factory=dict)  # pending notices
    quiet_until_ns: int = 0  # changes are gathered until then
    asks: float = ASKS_DEPTH
    asks_ns: int = 0

    def may_ask(self, now_ns: int) -> bool:
        """Take one token from the bucket of INTEREST frames; False if it is empty."""
        refill = max(0, now_ns - self.asks_ns) * ASKS_PER_S / 1e9
        self.asks, self.asks_ns = min(ASKS_DEPTH, self.asks + refill), now_ns
        if self.asks < 1:
            return False
        self.asks -= 1
        return True

    def reach(self, states: Sequence[tuple[str, bool]]) -> list[bytes]:
        """Return numbered REACH frames."""
        frames = encode_reach(self.number + 1, states)
        self.number += len(frames)
        return frames


class TorAgent:
    """Agent of one ToR. ``ports`` are its access ports, name to interface index.

    ``epoch`` (32 bits) must be larger than that of any earlier agent of this ToR: hosts believe the highest number.
    """

    def __init__(self, ports: Mapping[str, int], epoch: int, gather_ms: int = 2) -> None:
        """Start without interests; after a notice to a port, further changes are gathered for ``gather_ms``."""
        self._name_by_ifindex = {ifindex: name for name, ifindex in ports.items()}
        self._ports = {name: _Port(epoch << EPOCH_BITS) for name in ports}
        self._gather_ns = gather_ms * 1_000_000
        self._fib = Fib()
        self._askers: dict[str, dict[str, None]] = {}  # address to the interested ports
        self._waiting: dict[str, None] = {}  # ports with pending notices, in order of arrival
        self._burst_until_ns = 0
        self._burst_left = 0
        self._sweep_ns: int | None = None

    @property
    def deadline_ns(self) -> int | None:
        """Next time for ``on_timer``; None for never."""
        if not self._waiting:
            return self._sweep_ns
        quiet_ns = min(self._ports[name].quiet_until_ns for name in self._waiting)
        tell_ns = max(quiet_ns, 0 if self._burst_left else self._burst_until_ns)
        return tell_ns if self._sweep_ns is None else min(tell_ns, self._sweep_ns)

    @property
    def state_size(self) -> int:
        """Number of interests in memory."""
        return sum(len(port.wanted) for port in self._ports.values())

    def told(self, port: str, ip: str) -> bool | None:
        """Return the last state sent to the host behind a port; None without its interest."""
        return self._ports[port].told.get(ip)

    def hello(self) -> list[Send]:
        """Return an agent's first frame to every port, to which hosts reply with their interests at once."""
        for port in self._ports.values():
            port.number += 1
        return [Send(name, encode_hello(port.number)) for name, port in self._ports.items()]

    def resync(self, links: Iterable[LinkEvent], routes: Iterable[RouteEvent], now_ns: int) -> list[Send]:
        """Start over from dumps: at the start, and after the monitor lost messages."""
        self._fib = Fib()
        for link in links:
            self._on_link(link)
        for route in routes:
            self._fib.on_route(route)
        self._evaluate(self._askers)
        return self._tell(now_ns)

    def on_events(self, events: Sequence[LinkEvent | NeighbourEvent | RouteEvent], now_ns: int) -> list[Send]:
        """Handle messages of one read of the ToR's monitor; only their net effect counts."""
        touched: dict[str, None] = {}
        for event in events:
            if isinstance(event, RouteEvent):
                ip = self._fib.on_route(event)
                if ip is not None:
                    touched[ip] = None
            elif isinstance(event, LinkEvent):
                self._on_link(event)
                touched.update(dict.fromkeys(self._askers))
        self._evaluate(touched)
        return self._tell(now_ns)

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> list[Send]:
        """Handle a frame from the host behind ``port``: an INTEREST is answered at once, all else is ignored."""
        message = decode(payload)
        asking = self._ports.get(port)
        if not isinstance(message, Interest) or asking is None or not asking.may_ask(now_ns):
            return []
        expires_ns = now_ns + LIFETIME_REFRESHES * message.refresh_ms * 1_000_000
        answer = []
        for ip in message.destinations:
            if ip == EVERYTHING:
                continue
            if ip not in asking.wanted and len(asking.wanted) >= MAX_INTERESTS:
                continue
            asking.wanted[ip] = expires_ns
            asking.told[ip] = self._fib.reachable(ip)
            asking.news.pop(ip, None)
            self._askers.setdefault(ip, {})[port] = None
            answer.append((ip, asking.told[ip]))
        if self._sweep_ns is None or expires_ns < self._sweep_ns:
            self._sweep_ns = expires_ns
        if not asking.news:
            self._waiting.pop(port, None)
        if EVERYTHING in message.destinations:
            answer += self._not_asked_about(asking)
        frames = asking.reach(answer)
        asking.asks = max(0.0, asking.asks + 1 - max(1, len(frames)))  # a long answer counts by its number of frames
        return [Send(port, frame) for frame in frames]

    def _not_asked_about(self, asking: _Port) -> list[tuple[str, bool]]:
        """Return the other reachable destinations. They are only listed; later changes require an interest."""
        room = max(0, MAX_INTERESTS - len(asking.wanted))
        return [(ip, True) for ip in islice(self._fib.there(but=asking.wanted), room)]

    def on_timer(self, now_ns: int) -> list[Send]:
        """Drop interests that were not refreshed; send gathered notices."""
        if self._sweep_ns is not None and self._sweep_ns <= now_ns:
            self._sweep(now_ns)
        return self._tell(now_ns)

    def _on_link(self, event: LinkEvent) -> None:
        if not self._fib.on_link(event) and event.ifindex in self._name_by_ifindex:
            name = self._name_by_ifindex[event.ifindex]  # the host is unreachable; it will repeat its interest
            for ip in list(self._ports[name].wanted):
                self._drop(name, ip)

    def _evaluate(self, addresses: Iterable[str]) -> None:
        """Record pending notices. A change that is undone before its notice is sent is dropped."""
        for ip in addresses:
            askers = self._askers.get(ip)
            if not askers:
                continue
            reachable = self._fib.reachable(ip)
            for name in askers:
                port = self._ports[name]
                if port.told[ip] != reachable:
                    port.news[ip] = reachable
                    self._waiting[name] = None
                elif port.news.pop(ip, None) is not None and not port.news:
                    del self._waiting[name]

    def _tell(self, now_ns: int) -> list[Send]:
        """Send the due notices, within the burst limit; losses first, because packets are lost until then."""
        if self._waiting and now_ns >= self._burst_until_ns:
            self._burst_until_ns, self._burst_left = now_ns + BURST_NS, BURST_FRAMES
        sends: list[Send] = []
        for name in [name for name in self._waiting if self._ports[name].quiet_until_ns <= now_ns]:
            if not self._burst_left:
                break
            frames = self._news_of(self._ports[name], now_ns)
            del self._waiting[name]
            self._burst_left = max(0, self._burst_left - len(frames))
            sends += [Send(name, frame) for frame in frames]
        return sends

    def _news_of(self, port: _Port, now_ns: int) -> list[bytes]:
        live = [(ip, state) for ip, state in port.news.items() if port.wanted[ip] > now_ns]
        port.news.clear()
        port.told.update(live)
        port.quiet_until_ns = now_ns + self._gather_ns
        return port.reach(sorted(live, key=lambda entry: (entry[1], entry[0])))

    def _sweep(self, now_ns: int) -> None:
        for name, port in self._ports.items():
            for ip in [ip for ip, expires_ns in port.wanted.items() if expires_ns <= now_ns]:
                self._drop(name, ip)
        self._sweep_ns = min((e for port in self._ports.values() for e in port.wanted.values()), default=None)

    def _drop(self, name: str, ip: str) -> None:
        port, askers = self._ports[name], self._askers[ip]
        del port.wanted[ip], port.told[ip], askers[name]
        if not askers:
            del self._askers[ip]
        port.news.pop(ip, None)
        if not port.news:
            self._waiting.pop(name, None)
