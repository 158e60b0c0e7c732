"""Receiving many datagrams with one system call: recvmmsg(2) into numpy memory, with kernel receive stamps."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.testbed.kernel.ns import libc
from hpn.traffic.flows.ip_layer import IPV4, IpLayer
from hpn.traffic.io.mmsg import IOVEC, MMSGHDR, MSG_DONTWAIT

_SOL_SOCKET, _SCM_TIMESTAMPNS = 1, 35
_CONTROL_HEAD_BYTES, _STAMP_BYTES, _TOS_BYTES = 16, 32, 24  # of control messages: the head of each, and complete ones
_PORT = slice(2, 4)  # of a socket address
_SHIFT = 4  # datagrams start 4 bytes into their row: the payload fill behind the 36 header bytes is then 8-aligned

_CONTROL = np.dtype(
    [
        ("length", "u8"),
        ("level", "i4"),
        ("kind", "i4"),
        ("seconds", "i8"),  # of a receive stamp; or its lowest byte is the TOS
        ("nanoseconds", "i8"),
    ]
)
"""The one control message of a datagram: SO_TIMESTAMPNS, IP_RECVTOS or IPV6_RECVTCLASS."""


Index = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Batch:
    """Datagrams as views into the receiver's memory: valid until its next ``receive``."""

    rows: npt.NDArray[np.uint8]  # (rows, row bytes): UDP payload, then stale bytes
    lengths: npt.NDArray[np.uint32]
    sources: npt.NDArray[np.uint8]  # (packets, 6 or 18): UDP source port, IP source address, as on the wire
    received_ns: npt.NDArray[np.int64]  # CLOCK_MONOTONIC; 0 where TOS was requested
    owners: npt.NDArray[np.intp]  # the owner passed to ``receive`` for each packet's socket
    tos: npt.NDArray[np.uint8]  # DSCP and ECN; 0 where it was not requested
    places: Index | None = None  # indexes of the packets in ``rows``, ascending; None: they are all rows


class BatchReceiver:
    """Buffers for ``capacity`` datagrams of up to ``payload_bytes`` each, from several sockets; longer ones are
    truncated.

    With ``tos`` the sockets must report the TOS byte, otherwise the receive time of a datagram (``open_receiver``).
    """

    def __init__(self, capacity: int, payload_bytes: int, *, tos: bool = False, ip: IpLayer = IPV4) -> None:
        name_bytes = self._name_bytes = ip.SOCKADDR_BYTES
        stride = -(-(payload_bytes + _SHIFT) // 64) * 64
        self.capacity = capacity
        self._memory = np.zeros((capacity, stride), np.uint8)
        self._rows = self._memory[:, _SHIFT : _SHIFT + payload_bytes]
        self._names = np.zeros((capacity, name_bytes), np.uint8)
        self._source_at = _source_at(ip)
        self._controls = np.zeros(capacity, _CONTROL)
        self._iovecs = np.zeros(capacity, IOVEC)
        self._headers = np.zeros(capacity, MMSGHDR)
        index = np.arange(capacity, dtype=np.uint64)
        self._iovecs["base"] = self._rows.ctypes.data + index * np.uint64(stride)
        self._iovecs["length"] = payload_bytes
        self._headers["name"] = self._names.ctypes.data + index * np.uint64(name_bytes)
        self._headers["iov"] = self._iovecs.ctypes.data + index * np.uint64(IOVEC.itemsize)
        self._headers["iov_count"] = 1
        self._headers["control"] = self._controls.ctypes.data + index * np.uint64(_CONTROL.itemsize)
        self.headers_at = self._headers.ctypes.data  # address of the structures passed to the kernel
        self._clock = ClockOffset()
        self._written = capacity  # rows whose headers the kernel has changed
        self._used = 0
        nothing = np.zeros(capacity, np.int64)
        self._tos_bytes = self._controls.view(np.uint8).reshape(capacity, -1)[:, _CONTROL_HEAD_BYTES] if tos else None
        self._no_stamps, self._no_tos = nothing, nothing.astype(np.uint8)
        self._shares: list[tuple[int, int]] = []  # owner, packets

    def receive(self, fd: int, owner: int) -> int:
        """Receive waiting datagrams from the socket ``fd``, up to the free room; return their number. OSError on
        failure."""
        if not self._used:
            self.clear()
        first = self.headers_at + self._used * MMSGHDR.itemsize
        count = libc.recvmmsg(fd, ctypes.c_void_p(first), self.room, MSG_DONTWAIT, None)
        if count < 0:
            code = ctypes.get_errno()
            if code in (errno.EAGAIN, errno.EINTR):
                return 0
            raise OSError(code, f"recvmmsg: {os.strerror(code)}")
        self._used += count
        self._shares.append((owner, count))
        return int(count)

    def clear(self) -> None:
        """Reset the structures that the kernel has written."""
        if self._written:
            written = self._headers[: self._written]
            written["name_bytes"], written["control_bytes"] = self._name_bytes, _CONTROL.itemsize
            self._written = 0

    @property
    def room(self) -> int:
        """Number of datagrams that still fit before ``take``."""
        return self.capacity - self._used

    def take(self) -> Batch | None:
        """Return everything received since the last call; None if nothing was."""
        count, self._used = self._used, 0
        if not count:
            return None
        self._written = max(self._written, count)
        owners, counts = zip(*self._shares, strict=True)
        self._shares.clear()
        return Batch(
            self._rows[:count],
            self._headers["length"][:count],
            self._names[:count, self._source_at],
            self._stamps(count) if self._tos_bytes is None else self._no_stamps[:count],
            np.repeat(np.array(owners, np.intp), counts),
            self._no_tos[:count] if self._tos_bytes is None else self._tos(count, self._tos_bytes),
        )

    def chosen(
        self, rows: npt.NDArray[np.intp], lengths: npt.NDArray[np.uint32], owners: npt.NDArray[np.intp]
    ) -> Batch:
        """Return the datagrams (at least one) that arrived in ``rows`` (ascending) without ``receive``; without receive
        stamps."""
        count = len(rows)
        self._written = max(self._written, int(rows[-1]) + 1)
        which = slice(count) if rows[-1] == count - 1 else rows
        names = self._names[which]
        told = self._headers["control_bytes"][which] == _TOS_BYTES
        tos = self._no_tos[:count] if self._tos_bytes is None else self._tos_bytes[which] * told
        places = None if isinstance(which, slice) else which
        return Batch(self._rows, lengths, names[:, self._source_at], self._no_stamps[:count], owners, tos, places)

    def _stamps(self, count: int) -> npt.NDArray[np.int64]:
        offset = self._clock.sample()
        control = self._controls[:count]
        stamps: npt.NDArray[np.int64] = control["seconds"] * 1_000_000_000 + control["nanoseconds"] - offset
        stamped = (self._headers["control_bytes"][:count] >= _STAMP_BYTES) & (control["kind"] == _SCM_TIMESTAMPNS)
        if not stamped.all():  # stamps need a moment after the first socket in the machine requests them
            stamps[~stamped] = time.monotonic_ns()
        return stamps

    def _tos(self, count: int, tos: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        told: npt.NDArray[np.uint8] = tos[:count] * (self._headers["control_bytes"][:count] == _TOS_BYTES)
        return told


def _source_at(ip: IpLayer) -> slice | Index:
    """Return the columns of port and address in a socket address; a slice of neighbours makes no copy."""
    if _PORT.stop == ip.SOCKADDR_AT:
        return slice(_PORT.start, ip.SOCKADDR_AT + ip.ADDRESS_BYTES)
    address = range(ip.SOCKADDR_AT, ip.SOCKADDR_AT + ip.ADDRESS_BYTES)
    return np.array([_PORT.start, _PORT.start + 1, *address], np.intp)


class ClockOffset:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, tracked as clock discipline moves it."""

    def __init__(self) -> None:
        self._bracket = 1 << 62
        self._offset = 0
        self.sample()

    def sample(self) -> int:
        """Return the offset now, in nanoseconds, accurate to a few microseconds."""
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        took = after - before
        if took <= 4 * self._bracket + 1000:  # a comparison that took longer was interrupted: keep the old offset
            self._bracket = min(self._bracket, took)
            self._offset = wall - (before + after) // 2
        return self._offset
