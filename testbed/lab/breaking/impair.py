"""Impairments of links that take no carrier, at one port at a time: the levers that faults pull, and their inverse.

Whatever is put under a key is lifted by that key; several keys on one port add up and come off one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from hpn.testbed.fabric.model import Fabric, Link, Port
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lab.breaking.impair_egress import Delay, EgressShapers, Slow
from hpn.testbed.lab.breaking.impair_ingress import Corrupt, Drop, IngressChains, Traffic
from hpn.testbed.lab.markers import MarkerKind

__all__ = ["Corrupt", "Delay", "Drop", "Impairments", "Slow", "Traffic"]


class Impairments:
    """Those of one lab. OSError when the kernel refuses one, which ``failover.inject.needs`` finds out before."""

    def __init__(
        self,
        fabric: Fabric,
        spaces: Mapping[str, NetNs],
        requests: Callable[[str], Netlink],
        marking: MarkerKind | None = None,
    ) -> None:
        """``requests`` gives the netlink socket of a node; ``marking``: what its switches mark with."""
        self._spaces = spaces
        self._chains: dict[str, IngressChains] = {}
        self._shapers = EgressShapers(fabric, requests, marking)

    def open(self, nodes: Iterable[str]) -> None:
        """Get ready to act on what arrives at these nodes, so that it takes no time later."""
        for node in nodes:
            if node not in self._chains:
                self._chains[node] = IngressChains(self._spaces[node])

    def on_arrival(self, key: Hashable, port: Port, what: Drop | Corrupt) -> None:
        """From now on this happens to what arrives at ``port``; instead of what ``key`` did there before."""
        self.open([port.node])
        self._chains[port.node].put(key, port, what)

    def on_departure(self, key: Hashable, link: Link, port: Port, what: Slow | Delay) -> None:
        """From now on this happens to what leaves by ``port``, an end of ``link``."""
        self._shapers.put(key, link, port, what)

    async def lift(self, key: Hashable) -> None:
        """Undo everything under ``key``; nothing when there is nothing. What a delay holds is let through first."""
        for chains in self._chains.values():
            chains.lift(key)
        await self._shapers.lift(key)
