"""Memory layouts of sendmmsg(2) and recvmmsg(2), as numpy types of a 64-bit Linux."""

from __future__ import annotations

import numpy as np

MMSGHDR = np.dtype(
    [
        ("name", "u8"),
        ("name_bytes", "u4"),
        ("pad0", "u4"),
        ("iov", "u8"),
        ("iov_count", "u8"),
        ("control", "u8"),
        ("control_bytes", "u8"),
        ("flags", "i4"),
        ("pad1", "u4"),
        ("length", "u4"),
        ("pad2", "u4"),
    ]
)
IOVEC = np.dtype([("base", "u8"), ("length", "u8")])
MSG_DONTWAIT = 0x40
