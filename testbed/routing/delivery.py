"""Whether the BGP of a switch that has booted has delivered its routes into the FIB. Pure.

A BGP daemon says when a session is established, not when the peer has sent all it has: End-of-RIB (RFC 4724) belongs to
graceful restart, which is off here. So delivery is seen where it counts, in the FIB: every session on a link with
carrier is established and is a next hop, and nothing has changed for a moment. A session that yields no next hop within
its keepalive interval has nothing to offer that is better: the implicit End-of-RIB of other implementations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hpn.testbed.kernel.rtnetlink.rtnl_events import RouteEvent

QUIET_NS = 100_000_000
"""So long without a new route, and the feed is over; the routes of one feed come within milliseconds."""


class Delivery:
    """What a ToR that has just booted, its uplinks dark and its FIB empty, has heard from BGP since."""

    def __init__(self, uplinks: Mapping[str, int], silent_ns: int, protocol: int) -> None:
        """``uplinks``: name to ifindex of the ports that have a session; ``silent_ns``: BGP's keepalive interval.

        ``protocol``: of the routes that the switch's BGP daemon puts into the kernel.
        """
        self._uplinks = uplinks
        self._silent_ns = silent_ns
        self._protocol = protocol
        self._lit: set[str] = set()
        self._established: dict[str, int] = {}  # since when
        self._next_hops: set[int] = set()
        self._changed_ns = 0

    def carrier(self, port: str, up: bool) -> None:
        """An interface has carrier or not; those that are no uplinks are ignored."""
        self.carriers(self._lit | {port} if up else self._lit - {port})

    def carriers(self, up: Collection[str]) -> None:
        """These interfaces have carrier and no others."""
        self._lit = self._uplinks.keys() & set(up)

    def session(self, port: str, established: bool, now: int) -> None:
        """The session on this uplink came up or went down."""
        if established:
            self._established[port] = now
        else:
            self._established.pop(port, None)

    def routes(self, events: Iterable[object], now: int) -> None:
        """What the switch's monitor read: BGP routes count, all else does not."""
        for event in events:
            if isinstance(event, RouteEvent) and event.protocol == self._protocol and event.oifs:
                self._changed_ns = now
                if not event.gone:
                    self._next_hops.update(event.oifs)

    def due(self) -> int | None:
        """When everything is delivered if nothing more is heard; None while a session or all carrier is missing."""
        if not self._uplinks:
            return 0
        if not self._lit or not self._lit <= self._established.keys():
            return None
        silent = [since for port, since in self._established.items() if self._uplinks[port] not in self._next_hops]
        return max([self._changed_ns + QUIET_NS, *(since + self._silent_ns for since in silent)])
