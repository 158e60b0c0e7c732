"""Faults of whole nodes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from failover.faults.base import PlannedEdge, TargetKind, once
from testbed.fabric.model import Fabric, Link


@dataclass(frozen=True, slots=True)
class TorCrash:
    """A ToR dies: every one of its ports loses carrier in one batch, its BGP daemon and LACP speaker die with it.

    Hosts: the port towards it loses carrier. Aggs: the port towards it loses carrier, BGP drops the session at once.
    The ToR itself sees nothing any more. Restored by a boot with empty state: carrier, daemons, LACP, BGP, ARP.
    """

    KIND: ClassVar[str] = "tor-crash"
    TARGET: ClassVar[TargetKind] = TargetKind.TOR
    REPAIRS_ITSELF: ClassVar[bool] = False

    tor: str

    @property
    def target(self) -> str:
        """The ToR."""
        return self.tor

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Every link of the ToR."""
        return fabric.links_of(fabric.node(self.tor).name)

    def nodes_hit(self) -> tuple[str, ...]:
        """The ToR."""
        return (self.tor,)

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Dead once, booted once."""
        return once(at_ns, for_ns)
