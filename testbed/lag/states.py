"""The states the LACP machines can be in, and what tells one LAG from another (IEEE 802.1AX-2014, 6.3.6 and 6.4)."""

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
    """States of the Mux machine; COLLECTING is of independent control only, whose DISTRIBUTING is the last one."""

    DETACHED = "detached"
    WAITING = "waiting"
    ATTACHED_WTR = "waiting-to-restore"
    ATTACHED = "attached"
    COLLECTING = "collecting"
    COLLECTING_DISTRIBUTING = "distributing"


class Selected(StrEnum):
    """What the Selection Logic says of the port."""

    UNSELECTED = "unselected"
    STANDBY = "standby"
    SELECTED = "selected"


@dataclass(frozen=True, slots=True)
class LagId:
    """What tells a LAG of this System from its others (6.3.6): ports may aggregate when it is equal.

    ``individual`` is our own port number when the Partner refuses aggregation, else None. The Partner's would not do:
    two ToRs that share a system ID may give their ports equal numbers.
    """

    system_priority: int
    system: str
    key: int
    individual: int | None
