"""Faults of control planes: a hung one, a drained one, a BGP session that is reset. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from failover.faults.base import MS, LinkFault, PlannedEdge, TargetKind, Unit, parameter
from failover.faults.node import SwitchFault, TorCrash
from failover.model import EdgeKind


@dataclass(frozen=True, slots=True)
class TorControlHang(SwitchFault):
    """A ToR's control plane hangs while it forwards on: BGP, LACP, ARP to host routes, path control all fall silent.

    Hosts: no LACPDU for 3 s (fast), then the port leaves the LAG, for receiving too. Aggs: no BGP message for the hold
    time, then the ToR's routes go. In between the fabric still sends to hosts through a port they left. Restored by
    running on: every session is set up again.
    """

    KIND: ClassVar[str] = "tor-control-hang"
    TARGET: ClassVar[TargetKind] = TargetKind.TOR
    TAKES_CARRIER: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class TorLeave(SwitchFault):
    """A ToR tells every LACP partner that it is out of Synchronization, and forwards on. The second step of a drain.

    Hosts: the port leaves the LAG while it still has carrier. Aggs see nothing. Restored by Synchronization.
    """

    KIND: ClassVar[str] = "tor-leave"
    TARGET: ClassVar[TargetKind] = TargetKind.TOR
    TAKES_CARRIER: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class TorDrain(SwitchFault):
    """A ToR is taken out for maintenance in three steps, half of ``grace`` each, so that no packet need be lost.

    First it withdraws its host routes from BGP but keeps forwarding; its subnet routes stay to the last and lead late
    packets to it. Senders elsewhere move away. Then its LACP is out of Synchronization: its hosts leave the port, which
    still has carrier and forwards. Then it goes down as in ``TorCrash``. Restored by a boot, or by taking the first
    steps back while it is not down yet.
    """

    KIND: ClassVar[str] = "tor-drain"
    TARGET: ClassVar[TargetKind] = TargetKind.TOR
    TAKES_CARRIER: ClassVar[bool] = False

    grace_ns: int = parameter("grace", Unit.DURATION, 100 * MS, 600_000 * MS)

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Three steps, one boot."""
        steps = (
            PlannedEdge(at_ns, EdgeKind.FAILURE),
            PlannedEdge(at_ns + self.grace_ns // 2, EdgeKind.FAILURE, 1, TorLeave(self.switch)),
            PlannedEdge(at_ns + self.grace_ns, EdgeKind.FAILURE, 2, TorCrash(self.switch)),
        )
        return steps if for_ns is None else (*steps, PlannedEdge(at_ns + for_ns, EdgeKind.REPAIR))


@dataclass(frozen=True, slots=True)
class BgpReset(LinkFault):
    """The BGP session over a link between two switches is reset by its lower end, as an operator's 'clear' does.

    Both switches: the session goes with a NOTIFICATION (RFC 4486, administrative reset), the routes learned over it go,
    and it is set up again after the connect delay. Carrier and forwarding are untouched. Hosts see nothing. It is over
    when the session stands again, which no one has to do: there is no repair edge.
    """

    KIND: ClassVar[str] = "bgp-reset"
    TARGET: ClassVar[TargetKind] = TargetKind.UPLINK
    REPAIRS_ITSELF: ClassVar[bool] = True
    TAKES_CARRIER: ClassVar[bool] = False

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Reset once; ``for_ns`` is ignored."""
        return (PlannedEdge(at_ns, EdgeKind.FAILURE),)
