"""Packet records that the traffic engine writes.

Analysis needs only the two record files. They hold every packet, so no figure is an estimate.
"""

from __future__ import annotations

import numpy as np

from hpn.traffic.flows.flow import FlowSpec

__all__ = ["FLAG_BAD_ICRC", "RECEIVED", "SENT", "FlowSpec"]

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
        ("given_up", "<u4"),  # packets due since the last burst and not sent, as the sender itself was late
    ]
)
"""One send burst (32 bytes)."""

FLAG_BAD_ICRC = 1
