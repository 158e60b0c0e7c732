"""Transfers of flows that send by plan: the result and duration of each. Pure.

Changes when more is reported about a transfer. ``failover.analysis.metrics.transfers`` computes them from packets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from hpn.failover.analysis.budget import Interval


class Fate(StrEnum):
    """Result of a transfer."""

    COMPLETE = "complete"  # every packet arrived unharmed
    INCOMPLETE = "incomplete"  # one is missing, or will never be sent: its queue pair died or was closed
    UNFINISHED = "unfinished"  # the traffic ended in it, or so soon after it that packets were still on their way


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer of one flow: packets ``number`` x ``packets`` and on.

    ``ms``, of a complete one, is from the send stamp of its first packet to the receive stamp of the last to arrive;
    ``low_ms`` and ``high_ms`` are the ends of its interval: clock, and what the sender itself was off its plan.
    """

    flow: int
    number: int  # from 0
    edge: int | None  # index of the edge it counts for: where its first missing packet was sent, else its last one
    began_at_ns: int
    packets: int  # that it has
    sent: int
    received: int  # distinct, unharmed
    lost: int  # missing, those with a wrong ICRC included
    fate: Fate
    ms: float | None
    low_ms: float | None
    high_ms: float | None
    sender_late_ms: float  # the last packet that was sent, behind the plan that the first one sets; less than 0: ahead


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """Planned transfers of the flows of a run; the longest of each when they differ."""

    packets: int
    sending_ms: float
    every_ms: float

    @property
    def sending_share(self) -> float:
        """Duty cycle of the sender."""
        return self.sending_ms / self.every_ms


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers of a run, flow by flow in order of their numbers."""

    plan: TransferPlan
    transfers: tuple[Transfer, ...]

    def at(self, edge: int | None) -> Iterator[Transfer]:
        """Return the transfers that count for one edge; None: those that were over before the first."""
        return (each for each in self.transfers if each.edge == edge)


def interval_of(transfer: Transfer) -> Interval | None:
    """Return the interval of its duration; None when it is not complete."""
    if transfer.low_ms is None or transfer.high_ms is None:
        return None
    return Interval(transfer.low_ms, transfer.high_ms)
