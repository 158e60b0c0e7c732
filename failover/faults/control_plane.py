"""Control plane faults: a hang, a drain, a reset of a BGP session. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults.actions import Action, FaultActions
from hpn.failover.faults.base import (
    AS_OFTEN_AS_A_TOR,
    MS,
    LinkFault,
    Need,
    PlannedEdge,
    PlannedFault,
    SwitchPart,
    TargetKind,
    VisibleTo,
)
from hpn.failover.faults.fields import Unit, parameter
from hpn.failover.faults.node import SwitchFault, TorCrash
from hpn.failover.faults.streams import NOTHING, Direction, Frames, Stream, streams
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.wired.configs import own_configs


@dataclass(frozen=True, slots=True)
class TorControlHang(SwitchFault):
    """A ToR's control plane hangs while it forwards on: BGP, LACP, ARP to host routes, path control all fall silent.

    Hosts: no LACPDU for 3 s (fast), then the port leaves the LAG, for receiving too. Aggs: no BGP message for the hold
    time, then the ToR's routes go. In between the fabric still sends to hosts through a port they left. Restored by
    running on: every session is set up again.
    """

    KIND: ClassVar[str] = "tor-control-hang"
    TARGET: ClassVar[TargetKind] = TargetKind.TOR
    TELLS: ClassVar[VisibleTo] = VisibleTo.NOBODY
    PART: ClassVar[SwitchPart] = SwitchPart.CONTROL

    def silences(self) -> frozenset[Stream]:
        """Return all LACP, both ways. The kernel still answers ARP, and BGP sessions stay up until they time out."""
        return streams(Direction, (Frames.LACP,))

    def act(self, actions: FaultActions) -> Action:
        """Stop the ToR's control plane."""
        return actions.hang(actions.fabric.node(self.switch).name)


@dataclass(frozen=True, slots=True)
class TorLeave(SwitchFault):
    """A ToR tells every LACP partner that it is out of Synchronization, and forwards on. The second step of a drain.

    Hosts: the port leaves the LAG while it still has carrier. Aggs see nothing. Restored by Synchronization.
    """

    KIND: ClassVar[str] = "tor-leave"
    TARGET: ClassVar[TargetKind] = TargetKind.TOR
    TELLS: ClassVar[VisibleTo] = VisibleTo.NEIGHBOURS
    SESSIONS_DOWN: ClassVar[bool] = False

    def silences(self) -> frozenset[Stream]:
        """Return no stream: the ToR keeps forwarding."""
        return NOTHING

    def act(self, actions: FaultActions) -> Action:
        """Have the ToR signal its LACP partners that it is out of Synchronization."""
        return actions.leave(actions.fabric.node(self.switch).name)


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
    TELLS: ClassVar[VisibleTo] = VisibleTo.NEIGHBOURS

    grace_ns: int = parameter("grace", Unit.DURATION, 100 * MS, 600_000 * MS)

    def on(self, fabric: Fabric) -> TorDrain:
        """Return the fault. InputError for a ToR with a configuration of its own, which a drain would change."""
        own = own_configs(fabric).get(self.switch)
        if own is not None:
            raise InputError(f"a drain would change {own.file}, which {self.switch} runs; write tor-crash")
        return self

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return three draining steps; one boot repairs them all."""
        steps = (
            PlannedEdge(at_ns, EdgeKind.FAILURE),
            PlannedEdge(at_ns + self.grace_ns // 2, EdgeKind.FAILURE, 1, TorLeave(self.switch)),
            PlannedEdge(at_ns + self.grace_ns, EdgeKind.FAILURE, 2, TorCrash(self.switch)),
        )
        return steps if for_ns is None else (*steps, PlannedEdge(at_ns + for_ns, EdgeKind.REPAIR))

    def silences(self) -> frozenset[Stream]:
        """Return no stream until the ToR goes down."""
        return NOTHING

    def act(self, actions: FaultActions) -> Action:
        """Withdraw the host routes, the first step; the other steps are parts."""
        return actions.withdraw(actions.fabric.node(self.switch).name)

    def last_step(self, planned: PlannedFault) -> PlannedFault | None:
        """Return the crash that ends the drain."""
        down_ns = planned.at_ns + self.grace_ns
        for_ns = None if planned.for_ns is None else planned.for_ns - self.grace_ns
        return PlannedFault(planned.id, TorCrash(self.switch), down_ns, for_ns)

    def bears(self, mine: PlannedFault, other: PlannedFault) -> bool:
        """Return True for a crash of the drained ToR that lasts until the drain takes it down, or beyond the drain."""
        if not isinstance(other.fault, TorCrash):
            return False
        down_ns = mine.at_ns + self.grace_ns
        stays = other.over_at_ns is None or other.over_at_ns >= down_ns
        hidden = other.at_ns >= down_ns and mine.covers(other)
        return other.at_ns > mine.at_ns and stays and not hidden


@dataclass(frozen=True, slots=True)
class BgpReset(LinkFault):
    """The BGP session over a link between two switches is reset by its lower end, as an operator's 'clear' does.

    Both switches: the session goes with a NOTIFICATION (RFC 4486, administrative reset), the routes learned over it go,
    and it is set up again after the connect delay. Carrier and forwarding are untouched. Hosts see nothing. It is over
    when the session stands again, which no one has to do: there is no repair edge.
    """

    KIND: ClassVar[str] = "bgp-reset"
    TARGET: ClassVar[TargetKind] = TargetKind.UPLINK
    TELLS: ClassVar[VisibleTo] = VisibleTo.NEIGHBOURS
    STEADY: ClassVar[bool] = True
    REPAIRS_ITSELF: ClassVar[bool] = True
    SESSIONS_DOWN: ClassVar[bool] = False
    NEEDS: ClassVar[frozenset[Need]] = frozenset()
    PER_MONTH: ClassVar[float] = AS_OFTEN_AS_A_TOR
    WANTS_SESSIONS: ClassVar[bool] = True

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return one reset; ``for_ns`` is ignored."""
        return (PlannedEdge(at_ns, EdgeKind.FAILURE),)

    def silences(self) -> frozenset[Stream]:
        """Return no stream: carrier and forwarding are not affected."""
        return NOTHING

    def shows_in(self) -> frozenset[Stream]:
        """Return no stream: it shows in the daemons' messages."""
        return NOTHING

    def act(self, actions: FaultActions) -> Action:
        """Reset the session."""
        return actions.reset_session(actions.fabric.link(self.link))
