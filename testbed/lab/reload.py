"""Reload delay: a booted ToR stays out of its hosts' LAGs until it has routes for their traffic.

Vendors delay the ports of a switch that reloads for a fixed time (MLAG's reload delay, 300 s is usual). Here the wait
ends as soon as BGP has delivered and the data plane has the routes, and that time is its limit. Meanwhile ports have
carrier and LACP runs, out of Synchronization, so that the partners know each other when the wait ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.kernel.rtnetlink.rtnl_events import RouteEvent
from hpn.testbed.routing.daemons import daemon_of

QUIET_NS = 100_000_000
"""Time without a new route after which the feed is over; the routes of one feed come within milliseconds."""


class Delivery:
    """BGP state of a ToR since its boot, which began with its uplinks down and its FIB empty."""

    def __init__(self, uplinks: Mapping[str, int], silent_ns: int, protocol: int) -> None:
        """Start without any route; ``uplinks``: name to ifindex of the ports with a session.

        ``silent_ns``: BGP's keepalive interval. ``protocol``: that of the BGP daemon's routes in the kernel.
        """
        self._uplinks = uplinks
        self._silent_ns = silent_ns
        self._protocol = protocol
        self._lit: set[str] = set()
        self._established: dict[str, int] = {}  # time of establishment
        self._next_hops: set[int] = set()
        self._changed_ns = 0

    def carrier(self, port: str, up: bool) -> None:
        """Set the carrier of an interface; ports other than uplinks are ignored."""
        self.carriers(self._lit | {port} if up else self._lit - {port})

    def carriers(self, up: Collection[str]) -> None:
        """Set the interfaces that have carrier, replacing earlier state."""
        self._lit = self._uplinks.keys() & set(up)

    def session(self, port: str, established: bool, now: int) -> None:
        """Record that the session on this uplink came up or went down."""
        if established:
            self._established[port] = now
        else:
            self._established.pop(port, None)

    def routes(self, events: Iterable[object], now: int) -> None:
        """Process messages of the switch's monitor; only BGP routes count."""
        for event in events:
            if isinstance(event, RouteEvent) and event.protocol == self._protocol and event.oifs:
                self._changed_ns = now
                if not event.gone:
                    self._next_hops.update(event.oifs)

    def due(self) -> int | None:
        """Return when delivery is complete unless more arrives; None while a session or all carrier is missing."""
        if not self._uplinks:
            return 0
        if not self._lit or not self._lit <= self._established.keys():
            return None
        silent = [since for port, since in self._established.items() if self._uplinks[port] not in self._next_hops]
        return max([self._changed_ns + QUIET_NS, *(since + self._silent_ns for since in silent)])


_SECOND_NS = 1_000_000_000


class Reload:
    """The wait of one ToR on the running event loop; ``release`` is called once, unless ``stop`` comes first."""

    def __init__(
        self, fabric: Fabric, node: Node, sink: EventSink, release: Callable[[], None], *, behind: bool = False
    ) -> None:
        """Start the wait, with the ToR's uplinks down; ``behind``: the data plane has no routes until ``on_fib``."""
        self._behind = behind
        uplinks = [link.end_at(node.name) for link in fabric.links_of(node.name) if link.is_routed]
        bgp = fabric.spec.bgp
        self._delivery = Delivery(
            {end.name: end.ifindex for end in uplinks},
            bgp.keepalive_s * _SECOND_NS,
            daemon_of(fabric, node).route_protocol,
        )
        self._began_ns = now_ns()
        self._limit_ns = self._began_ns + fabric.spec.lacp.reload_delay_s * _SECOND_NS
        self._node, self._sink, self._release = node.name, sink, release
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._say("held")
        self._arm()

    def stop(self) -> None:
        """Cancel the wait without a release."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def pause(self) -> None:
        """Pause while the daemons hang; the time limit runs on."""
        self._paused = True
        self.stop()

    def resume(self, up: Collection[str]) -> None:
        """Resume with the daemons; ``up`` are the interfaces that have carrier now."""
        self._paused = False
        self._delivery.carriers(up)
        self._arm()

    def on_carrier(self, port: str, up: bool) -> None:
        """Handle a carrier change of the ToR's interface."""
        self._delivery.carrier(port, up)
        self._arm()

    def on_session(self, port: str, established: bool) -> None:
        """Handle a change of the ToR's BGP session."""
        self._delivery.session(port, established, now_ns())
        self._arm()

    def on_fib(self) -> None:
        """Handle the data plane's news that it has the routes."""
        self._behind = False
        self._arm()

    def on_messages(self, messages: Iterable[object]) -> None:
        """Handle messages of the ToR's netlink monitor, or all its routes after a message loss."""
        self._delivery.routes(messages, now_ns())
        self._arm()

    def _arm(self) -> None:
        """Set the timer to when the wait would end without further messages."""
        self.stop()
        if not self._paused:
            due = None if self._behind else self._delivery.due()
            at = self._limit_ns if due is None else min(due, self._limit_ns)
            self._timer = asyncio.get_running_loop().call_at(at / _SECOND_NS, self._over, at == due)

    def _over(self, delivered: bool) -> None:
        self._timer = None
        self._say("released", reason="BGP delivered" if delivered else "reload delay over")
        self._release()

    def _say(self, what: str, **detail: str | int | float) -> None:
        now = now_ns()
        if what == "released":
            detail["held_ms"] = (now - self._began_ns) // 1_000_000
        self._sink(Event(now, EventKind.DAEMON, self._node, "lacp", what, detail))
