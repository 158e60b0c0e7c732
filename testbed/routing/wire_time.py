"""Time that a packet spends on the wires of a shortest path: its size over the rate of each link. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.routing.srv6.switch_paths import SwitchGraph, end_of


class WireTimes:
    """Times in ns of packets of one size, from one end of the wire to the other at each link of a path."""

    def __init__(self, fabric: Fabric, packet_bytes: int) -> None:
        """Create it; ``packet_bytes``: with the Ethernet header."""
        self._graph = SwitchGraph(fabric)
        self._bits = packet_bytes * 8
        self._between = cache(self._between_switches)

    def least_ns(self, src: Nic, dst: Nic) -> int:
        """Return the least time from one NIC to another by a shortest path of any port; 0 if no port leads there."""
        return min(self._times(src, dst), default=0)

    def _times(self, src: Nic, dst: Nic) -> Iterator[int]:
        last = {link.upper.node: self._ns(link.rate_bps) for link in dst.links}
        ends = frozenset(last)
        for link in src.links:
            found = self._between(link.upper.node, ends)
            if found is not None:
                end, between_ns = found
                yield self._ns(link.rate_bps) + between_ns + last[end]

    def _between_switches(self, start: str, ends: frozenset[str]) -> tuple[str, int] | None:
        """Return where a shortest path leads, and its time; None if there is none."""
        links = next(self._graph.shortest(start, ends), None)
        return None if links is None else (end_of(start, links), sum(self._ns(link.rate_bps) for link in links))

    def _ns(self, rate_bps: int) -> int:
        return self._bits * 10**9 // rate_bps
