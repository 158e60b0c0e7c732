"""Detection that the BGP of a booted switch has delivered its routes into the FIB. Pure.

A BGP daemon reports when a session is established, not when the peer has sent all its routes: End-of-RIB (RFC 4724)
belongs to graceful restart, which is off here. So delivery is detected in the FIB: every session on a link with carrier
is established and is a next hop, and nothing has changed for a moment. A session without a next hop after its keepalive
interval has no better route to offer: the implicit End-of-RIB of other implementations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hpn.testbed.kernel.rtnetlink.rtnl_events import RouteEvent

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
