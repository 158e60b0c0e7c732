"""What an expectation asks: of which flows, at which edges, in what part of the fabric. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from hpn.failover.analysis.marks import Mark
from hpn.scenarios.expect.scope import Scope


class Flows(StrEnum):
    """Which flows an expectation is about, by their relation to the fault."""

    ALL = "all"
    HIT = "hit"  # an end of the flow is a NIC that lost a port
    SENDER = "sender"  # its source is: direction up, the LAG decides
    RECEIVER = "receiver"  # its destination is: direction down, routes and path control decide
    TRANSIT = "transit"  # a path it may take is hit, its NICs are not
    OTHERS = "others"  # the control group


class At(StrEnum):
    """Which edges of the faults an expectation is about."""

    FAILURE = "failure"
    REPAIR = "repair"
    ANY = "any"


class Whose(StrEnum):
    """Whose iterations an expectation is about, where a client runs beside a job."""

    JOB = "job"
    CLIENT = "client"


class Bound(StrEnum):
    """How the limit is meant; the value is the key in a drill file."""

    BELOW = "below"
    AT_MOST = "at_most"
    ABOVE = "above"
    AT_LEAST = "at_least"

    @property
    def is_upper(self) -> bool:
        """Whether a larger figure is a worse one."""
        return self in {Bound.BELOW, Bound.AT_MOST}


class Asked(Protocol):
    """What a metric reads of an ``Expectation`` to measure for it."""

    @property
    def flows(self) -> Flows:
        """Which flows."""

    @property
    def edge(self) -> At:
        """Which edges."""

    @property
    def fault(self) -> str | None:
        """Only the edges of this fault."""

    @property
    def scope(self) -> Scope:
        """Which part of the fabric."""

    @property
    def whose(self) -> Whose | None:
        """Of the job or of the client beside it; None where one of them runs alone."""

    @property
    def events(self) -> tuple[Mark, ...]:
        """In which order."""

    @property
    def bound(self) -> Bound:
        """Which side of the limit is the good one."""

    @property
    def limit(self) -> float:
        """In ns, a count, a share (1.0 = 100 %), a ratio, or 1/0."""

    @property
    def when(self) -> list[str]:
        """Fault and edge in words."""

    @property
    def over_record(self) -> bool:
        """Whether flows are counted over the whole record rather than at single edges."""
