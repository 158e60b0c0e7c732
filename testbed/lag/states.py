"""States of the LACP machines, and the identity of a LAG (IEEE 802.1AX-2014, 6.3.6 and 6.4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Rx(StrEnum):
    """States of the Receive machine; INITIALIZE is left at once, so it is the constructor."""

    PORT_DISABLED = "port-disabled"
    EXPIRED = "expired"
    DEFAULTED = "defaulted"
    CURRENT = "current"


class Periodic(StrEnum):
    """States of the Periodic Transmission machine; PERIODIC_TX is left at once, so it is an action."""

    NO_PERIODIC = "no-periodic"
    FAST_PERIODIC = "fast-periodic"
    SLOW_PERIODIC = "slow-periodic"


class Mux(StrEnum):
    """States of the Mux machine; COLLECTING exists only in independent control, whose DISTRIBUTING is the last one."""

    DETACHED = "detached"
    WAITING = "waiting"
    ATTACHED_WTR = "waiting-to-restore"
    ATTACHED = "attached"
    COLLECTING = "collecting"
    COLLECTING_DISTRIBUTING = "distributing"


class Selected(StrEnum):
    """Selection Logic's decision about a port."""

    UNSELECTED = "unselected"
    STANDBY = "standby"
    SELECTED = "selected"


@dataclass(frozen=True, slots=True)
class LagId:
    """Identity of a LAG within this System (6.3.6): ports with equal ones may aggregate.

    ``individual`` is our own port number when the Partner refuses aggregation, else None. The Partner's is unsuitable:
    two ToRs that share a system ID may give their ports equal numbers.
    """

    system_priority: int
    system: str
    key: int
    individual: int | None
