"""Separation of congestion loss from failover loss: an edge's effect on a flow, without the loss of full queues.

Changes when a figure of congestion is added. A packet is lost to congestion when its path works and crosses a link that
is offered more than its rate (``failover.analysis.offered``). All other loss is failover's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Congestion:
    """Packets of a flow that congestion took, and its outage without them, with its interval; None: none were taken."""

    lost: int
    first_at_ns: int  # send time of the first
    last_at_ns: int
    failover_ms: float  # all other missing packets / rate
    low_ms: float
    high_ms: float
    over: bool  # K packets in order after the last outage that is not congestion


@dataclass(frozen=True, slots=True)
class EdgeCongestion:
    """Loss of all flows to congestion after an edge, and the figures of the hit flows without it."""

    packets: int
    flows: int
    first_ms: float  # from the injection to the first packet that it took; below 0: on its way then
    last_ms: float  # to the last
    failover_packets: int  # all other packets lost or corrupted
    failover_flows: int  # that lost any of these
    failover_ms: float  # the longest outage without congestion, and its interval
    low_ms: float
    high_ms: float
    unrecovered: int  # flows that had not come back, congestion apart
