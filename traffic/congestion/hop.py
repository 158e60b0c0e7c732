"""Record of one switch port in a packet's in-band telemetry (INT), as congestion control uses it. Without numpy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hop:
    """State of a switch's egress port when a packet left it: totals of the port, as bytes of frames."""

    time_ns: int  # of one clock for all switches
    sent_bytes: int  # since the port was made
    queue_bytes: int  # after this packet
    rate_bps: int
