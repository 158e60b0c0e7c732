"""Selection of an expectation: its flows, its edges, and its part of the fabric. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from hpn.failover.analysis.protocol_events import ProtocolEvent
from hpn.scenarios.expect.scope import Scope


class Flows(StrEnum):
    """Flows that an expectation is about, by their relation to the fault."""

    ALL = "all"
    HIT = "hit"  # one end of the flow is a NIC that lost a port
    SENDER = "sender"  # the source is: direction up, the LAG decides
    RECEIVER = "receiver"  # the destination is: direction down, routes and path control decide
    TRANSIT = "transit"  # a path that it may take is hit, its NICs are not
    OTHERS = "others"  # the control group


class At(StrEnum):
    """Edges of faults that an expectation is about."""

    FAILURE = "failure"
    REPAIR = "repair"
    ANY = "any"


class Whose(StrEnum):
    """Whose iterations an expectation is about, where a client runs beside a job."""

    JOB = "job"
    CLIENT = "client"


class Bound(StrEnum):
    """Kind of limit; the value is the key in a drill file."""

    BELOW = "below"
    AT_MOST = "at_most"
    ABOVE = "above"
    AT_LEAST = "at_least"

    @property
    def is_upper(self) -> bool:
        """True if a larger figure is a worse one."""
        return self in {Bound.BELOW, Bound.AT_MOST}


class Selection(Protocol):
    """Part of an ``Expectation`` that a metric reads to measure for it."""

    @property
    def flows(self) -> Flows:
        """Selected flows."""

    @property
    def edge(self) -> At:
        """Selected edges."""

    @property
    def fault(self) -> str | None:
        """Fault whose edges are selected; None for all."""

    @property
    def scope(self) -> Scope:
        """Selected part of the fabric."""

    @property
    def whose(self) -> Whose | None:
        """Job or client alongside it; None if only one of them runs."""

    @property
    def events(self) -> tuple[ProtocolEvent, ...]:
        """Events in their expected order."""

    @property
    def bound(self) -> Bound:
        """Bound: the valid side of the limit."""

    @property
    def limit(self) -> float:
        """Limit in ns, or a count, a share (1.0 = 100 %), a ratio, or 1/0."""

    @property
    def when(self) -> list[str]:
        """Fault and edge as words."""

    @property
    def over_record(self) -> bool:
        """True if flows are counted over the whole record, not per edge."""
