"""Receiving many datagrams with one system call: recvmmsg(2) into numpy memory, with kernel receive stamps."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from testbed.kernel.ns import libc

_SOL_SOCKET, _SCM_TIMESTAMPNS = 1, 35
_CONTROL_BYTES = 32  # one control message: header 16, timespec 16
_SHIFT = 4  # datagrams start 4 bytes into their row: the payload fill behind the 36 header bytes is then 8-aligned
_MSG_DONTWAIT = 0x40

_MMSGHDR = np.dtype(
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
_CMSG = np.dtype([("length", "u8"), ("level", "i4"), ("kind", "i4"), ("seconds", "i8"), ("nanoseconds", "i8")])


@dataclass(frozen=True, slots=True)
class Batch:
    """Datagrams as views into the receiver's memory: valid until its next ``receive``."""

    rows: npt.NDArray[np.uint8]  # (packets, row bytes): UDP payload, then whatever was there before
    lengths: npt.NDArray[np.uint32]
    sources: npt.NDArray[np.uint8]  # (packets, 6): UDP source port, IPv4 source address, as on the wire
    received_ns: npt.NDArray[np.int64]  # CLOCK_MONOTONIC
    owners: npt.NDArray[np.intp]  # what ``receive`` was told of each packet's socket


class BatchReceiver:
    """Room for ``capacity`` datagrams of up to ``payload_bytes`` each, from several sockets; longer ones are cut."""

    def __init__(self, capacity: int, payload_bytes: int) -> None:
        stride = -(-(payload_bytes + _SHIFT) // 64) * 64
        self._capacity = capacity
        self._memory = np.zeros((capacity, stride), np.uint8)
        self._rows = self._memory[:, _SHIFT : _SHIFT + payload_bytes]
        self._names = np.zeros((capacity, 16), np.uint8)
        self._controls = np.zeros(capacity, _CMSG)
        self._iovecs = np.zeros((capacity, 2), np.uint64)
        self._headers = np.zeros(capacity, _MMSGHDR)
        index = np.arange(capacity, dtype=np.uint64)
        self._iovecs[:, 0] = self._rows.ctypes.data + index * np.uint64(stride)
        self._iovecs[:, 1] = payload_bytes
        self._headers["name"] = self._names.ctypes.data + index * np.uint64(16)
        self._headers["iov"] = self._iovecs.ctypes.data + index * np.uint64(16)
        self._headers["iov_count"] = 1
        self._headers["control"] = self._controls.ctypes.data + index * np.uint64(_CONTROL_BYTES)
        self._address = self._headers.ctypes.data
        self._clock = ClockOffset()
        self._written = capacity  # rows whose headers the kernel has changed
        self._used = 0
        self._shares: list[tuple[int, int]] = []  # owner, packets

    def receive(self, fd: int, owner: int) -> int:
        """Take what waits in the socket ``fd``, as much as there is room for; how many. OSError on failure."""
        if not self._used and self._written:
            written = self._headers[: self._written]
            written["name_bytes"], written["control_bytes"] = 16, _CONTROL_BYTES
            self._written = 0
        first = self._address + self._used * _MMSGHDR.itemsize
        count = libc.recvmmsg(fd, ctypes.c_void_p(first), self.room, _MSG_DONTWAIT, None)
        if count < 0:
            code = ctypes.get_errno()
            if code in (errno.EAGAIN, errno.EINTR):
                return 0
            raise OSError(code, f"recvmmsg: {os.strerror(code)}")
        self._used += count
        self._shares.append((owner, count))
        return int(count)

    @property
    def room(self) -> int:
        """Datagrams that still fit before ``take``."""
        return self._capacity - self._used

    def take(self) -> Batch | None:
        """Everything received since the last time; None when that is nothing."""
        count, self._used = self._used, 0
        if not count:
            return None
        self._written = max(self._written, count)
        owners, counts = zip(*self._shares, strict=True)
        self._shares.clear()
        return Batch(
            self._rows[:count],
            self._headers["length"][:count],
            self._names[:count, 2:8],
            self._stamps(count),
            np.repeat(np.array(owners, np.intp), counts),
        )

    def _stamps(self, count: int) -> npt.NDArray[np.int64]:
        offset = self._clock.sample()
        control = self._controls[:count]
        stamps: npt.NDArray[np.int64] = control["seconds"] * 1_000_000_000 + control["nanoseconds"] - offset
        stamped = (self._headers["control_bytes"][:count] == _CONTROL_BYTES) & (control["kind"] == _SCM_TIMESTAMPNS)
        if not stamped.all():  # stamps need a moment after the first socket in the machine asks for them
            stamps[~stamped] = time.monotonic_ns()
        return stamps


class ClockOffset:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, followed as clock discipline moves it."""

    def __init__(self) -> None:
        self._bracket = 1 << 62
        self._offset = 0
        self.sample()

    def sample(self) -> int:
        """The offset now, in nanoseconds, good to a few microseconds."""
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        took = after - before
        if took <= 4 * self._bracket + 1000:  # a comparison that took longer was interrupted: keep the old offset
            self._bracket = min(self._bracket, took)
            self._offset = wall - (before + after) // 2
        return self._offset
