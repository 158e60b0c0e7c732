"""The ToR's half of path control, pure: who asked about what, what the FIB says, who must be told.

A destination is reachable here when the FIB has its /32 through an interface with carrier. The subnet route does not
count: it attracts and drops. The agent knows only what kernel events tell it, hence what BGP and ARP brought about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from testbed.kernel.rtnl import RT_TABLE_MAIN, RTN_UNICAST, LinkEvent, NeighbourEvent, RouteEvent
from testbed.routing.pathcontrol.actions import Send
from testbed.routing.pathcontrol.message import LIFETIME_REFRESHES, Interest, decode, encode_reach

MAX_INTERESTS = 4096
"""Destinations one port may ask about; what exceeds it is ignored."""


class TorAgent:
    """One ToR. ``ports`` are its access ports, name to interface index.

    ``epoch`` (32 bits) must be larger than that of any earlier agent of this ToR: hosts believe the highest generation.
    """

    def __init__(self, ports: Mapping[str, int], epoch: int) -> None:
        self._port_by_ifindex = {ifindex: name for name, ifindex in ports.items()}
        self._generation = epoch << 32
        self._fib: dict[str, dict[int, frozenset[int]]] = {}  # /32 to metric to out interfaces
        self._down: set[int] = set()  # interfaces without carrier
        self._interest: dict[str, dict[str, int]] = {port: {} for port in ports}  # port to address to expiry
        self._told: dict[str, bool] = {}  # what those who ask believe
        self._sweep_ns: int | None = None

    @property
    def deadline_ns(self) -> int | None:
        """When ``on_timer`` wants to be called; None for never."""
        return self._sweep_ns

    def resync(self, links: Iterable[LinkEvent], routes: Iterable[RouteEvent], now_ns: int) -> list[Send]:
        """Start over from dumps: at the start, and after the monitor lost messages."""
        self._fib.clear()
        self._down = {link.ifindex for link in links if not (link.up and link.carrier)}
        for route in routes:
            self._on_route(route)
        return self._evaluate(self._told, now_ns)

    def on_events(self, events: Sequence[LinkEvent | NeighbourEvent | RouteEvent], now_ns: int) -> list[Send]:
        """What the ToR's monitor read at one go, judged by its outcome."""
        touched: set[str] = set()
        for event in events:
            if isinstance(event, RouteEvent):
                touched.update(self._on_route(event))
            elif isinstance(event, LinkEvent):
                self._on_link(event)
                touched.update(self._told)
        return self._evaluate(touched, now_ns)

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> list[Send]:
        """A frame from the host behind ``port``: an INTEREST is answered at once, all else is ignored."""
        message = decode(payload)
        if not isinstance(message, Interest) or port not in self._interest:
            return []
        expires_ns = now_ns + LIFETIME_REFRESHES * message.refresh_ms * 1_000_000
        wanted = self._interest[port]
        answer = []
        for ip in message.destinations:
            if ip not in wanted and len(wanted) >= MAX_INTERESTS:
                continue
            wanted[ip] = expires_ns
            answer.append((ip, self._told.setdefault(ip, self._reachable(ip))))
        if self._sweep_ns is None or expires_ns < self._sweep_ns:
            self._sweep_ns = expires_ns
        return [Send(port, frame) for frame in encode_reach(self._generation, answer)]

    def on_timer(self, now_ns: int) -> list[Send]:
        """Forget the interests that were not refreshed. Nothing is ever sent."""
        if self._sweep_ns is not None and self._sweep_ns <= now_ns:
            self._sweep(now_ns)
        return []

    def _on_route(self, event: RouteEvent) -> tuple[str, ...]:
        ip, _, length = event.prefix.partition("/")
        if length != "32" or event.table != RT_TABLE_MAIN:
            return ()
        entries = self._fib.setdefault(ip, {})
        if event.gone:
            entries.pop(event.metric, None)
        else:
            entries[event.metric] = frozenset(event.oifs if event.kind == RTN_UNICAST else ())
        if not entries:
            del self._fib[ip]
        return (ip,) if ip in self._told else ()

    def _on_link(self, event: LinkEvent) -> None:
        if event.up and event.carrier and not event.gone:
            self._down.discard(event.ifindex)
            return
        self._down.add(event.ifindex)
        if event.ifindex in self._port_by_ifindex:  # the host is no longer there to be told; it will ask again
            self._interest[self._port_by_ifindex[event.ifindex]].clear()
        if not event.up or event.gone:
            self._drop_flushed()

    def _drop_flushed(self) -> None:
        """The kernel removes a downed interface's routes without a word about them."""
        for ip, entries in list(self._fib.items()):
            for metric in [metric for metric, oifs in entries.items() if oifs <= self._down]:
                del entries[metric]
            if not entries:
                del self._fib[ip]

    def _reachable(self, ip: str) -> bool:
        return any(oifs - self._down for oifs in self._fib.get(ip, {}).values())

    def _evaluate(self, addresses: Iterable[str], now_ns: int) -> list[Send]:
        """Tell those who asked what has changed. A change that was undone within one reading never happened."""
        states = ((ip, self._reachable(ip)) for ip in addresses)
        news = sorted((ip, reachable) for ip, reachable in states if reachable != self._told[ip])
        if not news:
            return []
        self._generation += 1
        self._told.update(news)
        sends = []
        for port, wanted in sorted(self._interest.items()):
            concerned = [(ip, state) for ip, state in news if wanted.get(ip, 0) > now_ns]
            sends += [Send(port, frame) for frame in encode_reach(self._generation, concerned)]
        return sends

    def _sweep(self, now_ns: int) -> None:
        for wanted in self._interest.values():
            for ip in [ip for ip, expires_ns in wanted.items() if expires_ns <= now_ns]:
                del wanted[ip]
        alive = {ip for wanted in self._interest.values() for ip in wanted}
        self._told = {ip: state for ip, state in self._told.items() if ip in alive}
        self._sweep_ns = min((e for wanted in self._interest.values() for e in wanted.values()), default=None)
