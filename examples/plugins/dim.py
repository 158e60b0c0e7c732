"""A fault: a transceiver goes dim (docs/extending.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hpn.failover.faults import FAULTS, Unit, VisibleTo, parameter
from hpn.failover.faults.actions import Action, FaultActions, LostFrames
from hpn.failover.faults.base import AS_OFTEN_AS_A_TOR, LinkFault, Need
from hpn.failover.faults.streams import NOTHING, Direction, Frames, Stream, streams


@dataclass(frozen=True, slots=True)
class Dim(LinkFault):
    """A transceiver goes dim: a share of what goes up is lost, and nobody is told.

    LACP gives up only when three LACPDUs in a row are lost. Restored by a clean fibre.
    """

    KIND: ClassVar[str] = "dim"
    TELLS: ClassVar[VisibleTo] = VisibleTo.NOBODY
    STEADY: ClassVar[bool] = True
    SESSIONS_DOWN: ClassVar[bool] = False
    NEEDS: ClassVar[frozenset[Need]] = frozenset({Need.NFT_INGRESS})
    PER_MONTH: ClassVar[float] = AS_OFTEN_AS_A_TOR

    share: float = parameter("share", Unit.PERCENT, 0.01, 0.99)

    def silences(self) -> frozenset[Stream]:
        """None: some of everything gets through."""
        return NOTHING

    def shows_in(self) -> frozenset[Stream]:
        """In all that goes up."""
        return streams((Direction.UP,), Frames)

    def act(self, levers: FaultActions) -> Action:
        """Where it arrives."""
        return levers.lose(self, levers.fabric.link(self.link), (Direction.UP,), LostFrames.EVERYTHING, self.share)


FAULTS.add(Dim)
