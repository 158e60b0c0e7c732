"""A link that decays: errors rise until no correction hides them, and the port may shut itself down. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults.actions import Action, FaultActions, Rise
from hpn.failover.faults.base import AS_OFTEN_AS_A_TOR, MS, LinkFault, Need, PlannedEdge, PlannedFault, VisibleTo
from hpn.failover.faults.fields import Unit, choice, parameter
from hpn.failover.faults.link import LinkDown
from hpn.failover.faults.streams import EVERYTHING, NOTHING, Direction, Frames, Stream, streams
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric

_STEPS = 100
_SHORTEST_NS = 10 * MS
"""Shortest step: each rewrites the rules at both ends."""


class Curve(StrEnum):
    """Rise of the errors."""

    LINEAR = "linear"
    EXPONENTIAL = "exponential"


class Errors(StrEnum):
    """Fate of a frame with an error."""

    LOST = "lost"  # the FCS tells, and the port drops it
    CORRUPTED = "corrupted"  # behind the FCS check: only RoCE's own CRC tells


@dataclass(frozen=True, slots=True)
class LinkDecay(LinkFault):
    """An optic decays: the share of frames with errors rises from ``from`` to ``to`` within ``over``, both ways.

    The share is that before correction. Below ``fec`` forward error correction repairs every frame, as a Reed-Solomon
    code does up to its limit: nothing is lost. From there on frames are ``lost``, or ``corrupted`` as by
    ``BitCorruption``. At ``shutdown`` the port shuts itself down, as switches do on a symbol error threshold: both ends
    lose carrier, as by ``LinkDown``. Nobody is told before. After ``over`` the share stays. Restored by a new optic.
    """

    KIND: ClassVar[str] = "link-decay"
    TELLS: ClassVar[VisibleTo] = VisibleTo.NOBODY
    STEADY: ClassVar[bool] = False
    SESSIONS_DOWN: ClassVar[bool] = True
    NEEDS: ClassVar[frozenset[Need]] = frozenset({Need.NFT_INGRESS})
    PER_MONTH: ClassVar[float] = AS_OFTEN_AS_A_TOR

    start: float = parameter("from", Unit.PERCENT, 0.000001, 0.5)
    end: float = parameter("to", Unit.PERCENT, 0.0001, 1.0)
    over_ns: int = parameter("over", Unit.DURATION, 100 * MS, 600_000 * MS)
    curve: Curve = choice("curve", Curve, default=Curve.EXPONENTIAL)  # noqa: RUF009 - a field
    fec: float = parameter("fec", Unit.PERCENT, 0.0, 1.0, default=0.0)
    shutdown: float = parameter("shutdown", Unit.PERCENT, 0.0001, 1.0, default=1.0)
    errors: Errors = choice("errors", Errors, default=Errors.LOST)  # noqa: RUF009 - a field

    def on(self, fabric: Fabric) -> LinkDecay:
        """Return it unchanged. InputError when it does not rise, or is shut from the start."""
        if self.end <= self.start:
            raise InputError(f"a decay rises, but 'to' ({self.end:.6%}) is not above 'from' ({self.start:.6%})")
        if self.shutdown <= self.start:
            raise InputError(
                f"'shutdown' ({self.shutdown:.6%}) is not above 'from' ({self.start:.6%}), so the port never runs;"
                " write a larger 'shutdown', or fault: link-down"
            )
        return self

    def share_at(self, after_ns: int) -> float:
        """Return the share of frames with errors before correction."""
        progress = min(after_ns / self.over_ns, 1.0)
        if self.curve is Curve.LINEAR:
            share = self.start + (self.end - self.start) * progress
        else:
            share = self.start * float((self.end / self.start) ** progress)
        return min(share, self.end)

    def reaches(self, share: float) -> int | None:
        """Return how long after its begin it has that share; None: never."""
        if share > self.end:
            return None
        if share <= self.start:
            return 0
        if self.curve is Curve.LINEAR:
            return round(self.over_ns * (share - self.start) / (self.end - self.start))
        return round(self.over_ns * math.log(share / self.start) / math.log(self.end / self.start))

    @property
    def rises(self) -> tuple[Rise, ...]:
        """Steps of what gets through correction: each has the share of its middle, the last one stays."""
        step_ns = max(_SHORTEST_NS, self.over_ns // _STEPS)
        begun_ns = self.reaches(self.fec)
        if begun_ns is None:
            return ()
        starts = range(begun_ns, self.over_ns, step_ns)
        rising = (Rise(at, self.share_at(min(at + step_ns // 2, self.over_ns))) for at in starts)
        return (*rising, Rise(max(begun_ns, self.over_ns), self.end))

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return its begin, the port's shutdown if it comes to that, and one repair of both."""
        found = [PlannedEdge(at_ns, EdgeKind.FAILURE)]
        if (shut_ns := self.reaches(self.shutdown)) is not None:
            found.append(PlannedEdge(at_ns + shut_ns, EdgeKind.FAILURE, 1, LinkDown(self.link)))
        if for_ns is not None:
            found.append(PlannedEdge(at_ns + for_ns, EdgeKind.REPAIR))
        return tuple(found)

    def last_step(self, planned: PlannedFault) -> PlannedFault | None:
        """Return the shutdown, if it comes to that."""
        shut_ns = self.reaches(self.shutdown)
        if shut_ns is None:
            return None
        for_ns = None if planned.for_ns is None else planned.for_ns - shut_ns
        return PlannedFault(planned.id, LinkDown(self.link), planned.at_ns + shut_ns, for_ns)

    def silences(self) -> frozenset[Stream]:
        """Return no stream: some of everything gets through until the port shuts down."""
        return NOTHING

    def shows_in(self) -> frozenset[Stream]:
        """Return what gets lost or corrupted."""
        return EVERYTHING if self.errors is Errors.LOST else streams(Direction, (Frames.DATA,))

    def act(self, actions: FaultActions) -> Action:
        """Raise the loss or corruption at both ends, step by step; the shutdown is a part."""
        link = actions.fabric.link(self.link)
        return actions.decay(self, link, self.rises, corrupts=self.errors is Errors.CORRUPTED)
