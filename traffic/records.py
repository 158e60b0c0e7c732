"""What the traffic engine is told and what it writes down: flow specifications and packet records.

The two record files are the only thing analysis needs; they hold every packet, so no figure is a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RECEIVED = np.dtype(
    [
        ("flow", "<u4"),  # FlowSpec.id
        ("flags", "<u4"),  # 1 = ICRC wrong
        ("seq", "<u8"),  # sequence number in the flow, from 0, never reused
        ("sent_ns", "<i8"),  # CLOCK_MONOTONIC at the sender's system call, carried in the packet
        ("received_ns", "<i8"),  # CLOCK_MONOTONIC at receipt (kernel receive stamp, converted)
    ]
)
"""One received data packet (32 bytes)."""

SENT = np.dtype(
    [
        ("flow", "<u4"),
        ("count", "<u4"),  # packets in this burst: seq .. seq + count - 1
        ("seq", "<u8"),
        ("sent_ns", "<i8"),
        ("sport", "<u4"),  # UDP source port used
        ("reserved", "<u4"),
    ]
)
"""One send burst (32 bytes)."""

FLAG_BAD_ICRC = 1


@dataclass(frozen=True, slots=True)
class FlowSpec:
    """One queue pair's data direction, from requester to responder.

    ``rate_pps`` packets per second of ``path_mtu`` payload bytes each. ``ib_timeout`` is the InfiniBand exponent
    (4.096 us x 2^n per try) and ``retry_count`` the number of retries before the queue pair errors.
    """

    id: int
    name: str  # 'p0.s0.h0.r0>p0.s1.h0.r0#0'
    src_nic: str
    dst_nic: str
    src_ip: str
    dst_ip: str
    sport: int  # requester's UDP source port (data)
    ack_sport: int  # responder's UDP source port (acknowledgements)
    rate_pps: float
    path_mtu: int = 4096
    ib_timeout: int = 14
    retry_count: int = 7

    @property
    def goodput_bps(self) -> float:
        """Payload bits per second when nothing is lost."""
        return self.rate_pps * self.path_mtu * 8
