"""Record types that a job's workers write: spans, messages, retransmissions, telemetry. Times are CLOCK_MONOTONIC."""

from __future__ import annotations

import numpy as np

SPAN = np.dtype(
    [
        ("rank", "<u4"),
        ("iteration", "<u4"),
        ("span", "<u4"),  # index in the rank's program
        ("wrong", "<u4"),  # blocks of its result that are not what they must be
        ("begin_ns", "<i8"),
        ("end_ns", "<i8"),
    ]
)
"""One collective, or one block of compute, of one rank (32 bytes)."""

MESSAGE = np.dtype(
    [
        ("flow", "<u4"),  # FlowSpec.id of its queue pair
        ("tag", "<u4"),
        ("bytes", "<u8"),
        ("posted_ns", "<i8"),
        ("completed_ns", "<i8"),  # at the sender: acknowledged to its last packet
    ]
)
"""One work request that was completed (32 bytes)."""

RETRY = np.dtype(
    [
        ("flow", "<u4"),  # FlowSpec.id of its queue pair
        ("expiries", "<u4"),  # of its retry timer in a row; 0: a NAK told that a packet is missing
        ("at_ns", "<i8"),
    ]
)
"""A moment at which a queue pair on one path began to retransmit (16 bytes)."""

STAMP = np.dtype(
    [
        ("flow", "<u4"),  # FlowSpec.id of its queue pair
        ("hop", "<u4"),  # switches passed before
        ("took_ns", "<u4"),  # since the stamp before, or since the probe was sent
        ("wait_ns", "<u4"),  # until a whole packet behind it would have left, by queue and rate of the port
        ("at_ns", "<i8"),  # when its echo came back
    ]
)
"""What one switch wrote into a probe of a queue pair (24 bytes)."""
