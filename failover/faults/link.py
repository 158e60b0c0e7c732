"""Faults of one link that take its carrier: cut, administratively down, flap. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults.actions import Action, FaultActions
from hpn.failover.faults.base import AS_OFTEN_AS_A_TOR, MS, LinkCarrierFault, PlannedEdge, TargetKind
from hpn.failover.faults.fields import Unit, choice, parameter


@dataclass(frozen=True, slots=True)
class _Cut(LinkCarrierFault):
    """The lower end is taken down; the upper loses carrier with it."""

    def act(self, actions: FaultActions) -> Action:
        """Take the lower end's port down."""
        link = actions.fabric.link(self.link)
        return actions.cut([(link, link.lower.node)])


@dataclass(frozen=True, slots=True)
class LinkDown(_Cut):
    """A cable is cut: both ends lose carrier at once.

    Host: the port of the NIC loses carrier, the LAG drops it at once (no LACP timeout is needed). ToR: the port loses
    carrier, its neighbours and host routes go, BGP withdraws them. Restored by giving carrier back; LACP then has to
    agree again before the port carries traffic.
    """

    KIND: ClassVar[str] = "link-down"
    PER_MONTH: ClassVar[float] = 0.00057  # of NIC-ToR links: HPN, SIGCOMM 2024


class End(StrEnum):
    """An end of an access link."""

    HOST = "host"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class AdminDown(LinkCarrierFault):
    """Someone shuts one ``end`` of an access link: that end is down by will, the other loses carrier.

    Hardware: 'shutdown' turns the laser off, so the far end sees loss of signal; a veth does the same. The end that was
    shut also forgets what hung on the interface. Host end: the port leaves the LAG, the ToR loses carrier. Switch end:
    the ToR drops the port's neighbours and host routes, the host's port loses carrier. Restored by 'no shutdown' at
    that end; LACP then has to agree again.
    """

    KIND: ClassVar[str] = "admin-down"
    TARGET: ClassVar[TargetKind] = TargetKind.ACCESS_LINK
    PER_MONTH: ClassVar[float] = AS_OFTEN_AS_A_TOR

    end: End = choice("end", End)  # noqa: RUF009 - a field

    def act(self, actions: FaultActions) -> Action:
        """Take the port at that end down."""
        link = actions.fabric.link(self.link)
        return actions.cut([(link, (link.lower if self.end is End.HOST else link.upper).node)])


@dataclass(frozen=True, slots=True)
class LinkFlap(_Cut):
    """A link that goes down and up ``count`` times, down for ``duty`` of every ``period``.

    Host and ToR see what ``LinkDown`` shows them, again and again; a period shorter than LACP's or BGP's recovery means
    that the port never gets back into use between two flaps. The last period ends with the repair.
    """

    KIND: ClassVar[str] = "link-flap"
    STEADY: ClassVar[bool] = False
    REPAIRS_ITSELF: ClassVar[bool] = True
    PER_MONTH: ClassVar[float] = 30_000 * 30 / 30_720  # about the middle of the paper's flaps a day, on a pod's links

    period_ns: int = parameter("period", Unit.DURATION, 10 * MS, 60_000 * MS)
    duty: float = parameter("duty", Unit.PERCENT, 0.01, 0.99)
    count: int = parameter("count", Unit.COUNT, 1, 1000)

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return a failure at the start of each period, and a repair after ``duty`` of it; ``for_ns`` is ignored."""
        down_ns = int(self.period_ns * self.duty)
        starts = [at_ns + i * self.period_ns for i in range(self.count)]
        pairs = [
            (PlannedEdge(start, EdgeKind.FAILURE, i), PlannedEdge(start + down_ns, EdgeKind.REPAIR, i))
            for i, start in enumerate(starts)
        ]
        return tuple(edge for pair in pairs for edge in pair)
