"""Link impairments that leave carrier up, applied per port: fault actions and their inverse.

Each impairment is added and removed by a key; several keys on one port combine, and are removed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from hpn.testbed.fabric.model import Fabric, Link, Port
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lab.breaking.impair_egress import Delay, EgressShapers, Slow
from hpn.testbed.lab.breaking.impair_ingress import Arriving, Corrupt, Drop, DropBucket, IngressChains, Traffic
from hpn.testbed.lab.breaking.stuck_ports import StuckPorts
from hpn.testbed.lab.markers import MarkerKind

__all__ = ["Arriving", "Corrupt", "Delay", "Drop", "DropBucket", "Impairments", "Slow", "Traffic"]


class Impairments:
    """Impairments of one lab. OSError if the kernel refuses one, which ``failover.inject.needs`` checks beforehand."""

    def __init__(
        self,
        fabric: Fabric,
        spaces: Mapping[str, NetNs],
        requests: Callable[[str], Netlink],
        marking: MarkerKind | None = None,
    ) -> None:
        """Create them; ``requests`` returns a node's netlink socket, ``marking`` is its switches' marker."""
        self._spaces = spaces
        self._chains: dict[str, IngressChains] = {}
        self._stuck = StuckPorts(fabric, requests)
        self._shapers = EgressShapers(fabric, requests, marking, self._stuck.at_share)

    def open(self, nodes: Iterable[str]) -> None:
        """Prepare to impair traffic that arrives at these nodes, so that it takes no time later."""
        for node in nodes:
            if node not in self._chains:
                self._chains[node] = IngressChains(self._spaces[node])

    def on_arrival(self, key: Hashable, port: Port, what: Arriving) -> None:
        """Impair arriving traffic at ``port`` from now on; replaces an earlier impairment of ``key`` there."""
        self.open([port.node])
        self._chains[port.node].put(key, port, what)

    def on_departure(self, key: Hashable, link: Link, port: Port, what: Slow | Delay) -> None:
        """Impair departing traffic at ``port``, an end of ``link``, from now on."""
        self._shapers.put(key, link, port, what)

    def stick(self, key: Hashable, link: Link, priority: int, share: float = 1.0) -> None:
        """Have the lower end of ``link``, a host's port, stop ``priority`` for that share of the time from now on."""
        self._stuck.put(key, link, priority, share)

    def arrival_keys(self) -> set[Hashable]:
        """Return the keys under which arriving traffic is impaired."""
        return {key for chains in self._chains.values() for key in chains.keys()}  # noqa: SIM118  # no mapping

    def lift_arrivals(self, key: Hashable) -> None:
        """Remove what impairs arriving traffic under ``key``, if anything."""
        for chains in self._chains.values():
            chains.lift(key)

    async def lift(self, key: Hashable) -> None:
        """Remove everything under ``key``, if anything. Frames that a delay holds are delivered first."""
        self.lift_arrivals(key)
        self._stuck.lift(key)
        await self._shapers.lift(key)
