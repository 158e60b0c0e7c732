"""Failure of a host that is replaced by a spare one. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults.actions import NO_ACTION, Action, FaultActions
from hpn.failover.faults.base import MS, PlannedEdge, Replacement, TargetKind, VisibleTo
from hpn.failover.faults.fields import Unit, name, parameter
from hpn.failover.faults.node import HostDown, ManyLinksFault
from hpn.failover.faults.streams import NOTHING, Stream
from hpn.testbed.fabric.model import Fabric, Link


@dataclass(frozen=True, slots=True)
class SpareTakeover(ManyLinksFault):
    """A spare host takes over the job of a dead one: nothing of the network changes, only who talks to whom.

    Every queue pair from or to the dead host is closed; for each a new one from or to the spare's NIC of the same rail
    begins. Second step of ``HostReplaced``.
    """

    KIND: ClassVar[str] = "spare-takeover"
    TARGET: ClassVar[TargetKind] = TargetKind.HOST
    TELLS: ClassVar[VisibleTo] = VisibleTo.NOBODY
    REPAIRS_ITSELF: ClassVar[bool] = True
    SESSIONS_DOWN: ClassVar[bool] = False

    spare: str
    host: str

    @property
    def target(self) -> str:
        """Name of the spare."""
        return self.spare

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return the links of the spare, whose new flows this step is about."""
        return fabric.links_of(fabric.node(self.spare).name)

    def nodes_hit(self) -> tuple[str, ...]:
        """Return no node: the spare was up before."""
        return ()

    def silences(self) -> frozenset[Stream]:
        """Return no stream: the network does not change."""
        return NOTHING

    def act(self, actions: FaultActions) -> Action:
        """Do nothing to the lab: the traffic takes over."""
        return NO_ACTION

    @property
    def takes_over(self) -> tuple[str, str]:
        """The dead host and its spare."""
        return self.host, self.spare


@dataclass(frozen=True, slots=True)
class HostReplaced(HostDown):
    """A host loses power, and ``after`` later its job goes on with a spare host of its segment in its place.

    ToRs and peers see what ``HostDown`` shows them. ``after`` is what scheduler, image and restart take. The takeover
    (``SpareTakeover``) is a repair of the job, the first repair edge; power comes back with the second, ``for`` after
    the death or at the end of the drill, and no queue pair is left there to notice.
    """

    KIND: ClassVar[str] = "host-replaced"
    REPLACES_HOST: ClassVar[bool] = True

    after_ns: int = parameter("after", Unit.DURATION, 10 * MS, 1_800_000 * MS)
    spare: str = name("spare", example="p0.s0.h2")  # '' until ``scenarios.drill.spares`` has chosen one

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return the host's failure, the spare's takeover, and the return of power."""
        death = PlannedEdge(at_ns, EdgeKind.FAILURE)
        takeover = PlannedEdge(at_ns + self.after_ns, EdgeKind.REPAIR, 0, SpareTakeover(self.spare, self.host))
        power = () if for_ns is None else (PlannedEdge(at_ns + for_ns, EdgeKind.REPAIR, 1),)
        return (death, takeover, *power)

    def rate_left(self) -> float | None:
        """Return None: a spare takes over."""
        return None

    @property
    def replacement(self) -> Replacement:
        """The spare, ``after`` the host's failure."""
        return Replacement(self.host, self.spare, self.after_ns)

    def with_spare(self, spare: str) -> HostReplaced:
        """Return the fault with this spare."""
        return replace(self, spare=spare)
