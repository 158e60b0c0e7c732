"""Batched send of IP packets: sendmmsg(2) from numpy memory, each packet in three pieces."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from hpn.testbed.kernel.ns import libc
from hpn.traffic.flows.ip_layer import IPV4, IpLayer
from hpn.traffic.io.mmsg import IOVEC, MMSGHDR, MSG_DONTWAIT

U8 = npt.NDArray[np.uint8]

HEAD_BYTES = 256
TAIL_BYTES = 8


class PacketRows:
    """Buffers for ``capacity`` packets: 256 own bytes, a slice of a fill that all share, and 8 more own bytes."""

    def __init__(self, capacity: int, fill: bytes, ip: IpLayer = IPV4) -> None:
        self.capacity = capacity
        self.ip = ip
        name_bytes = self._name_size = ip.SOCKADDR_BYTES
        self.heads = np.zeros((capacity, HEAD_BYTES), np.uint8)
        self.tails = np.zeros((capacity, TAIL_BYTES), np.uint8)
        self.names = np.zeros((capacity, name_bytes), np.uint8)  # destinations, as ``IpLayer.sockaddr`` returns them
        self._fill = np.frombuffer(fill, np.uint8)
        self._pieces = np.zeros((capacity, 3), IOVEC)
        self.lengths = self._pieces["length"]  # of the three pieces
        self._headers = np.zeros(capacity, MMSGHDR)
        self._point()
        # The same memory for one packet at a time: an assignment to a view costs a tenth of one to an array.
        self._head_bytes, self._tail_bytes = self.heads.data.cast("B"), self.tails.data.cast("B")
        self._name_bytes = self.names.data.cast("B")
        self._words = self._pieces.view(np.uint64).data

    def _point(self) -> None:
        """Set the pointers in the kernel's structures; only lengths change later."""
        index = np.arange(self.capacity, dtype=np.uint64)
        for piece, rows in enumerate((self.heads, self.tails)):
            self._pieces["base"][:, 2 * piece] = rows.ctypes.data + index * np.uint64(rows.shape[1])
        self._pieces["base"][:, 1] = self._fill.ctypes.data
        self._headers["name"] = self.names.ctypes.data + index * np.uint64(self._name_size)
        self._headers["name_bytes"] = self._name_size
        self._headers["iov"] = self._pieces.ctypes.data + index * np.uint64(3 * IOVEC.itemsize)
        self._headers["iov_count"] = 3
        self.headers_at = self._headers.ctypes.data  # address of the structures passed to the kernel

    def hand_over(self, fd: int, first: int, end: int) -> tuple[int, int]:
        """Send the rows from ``first`` to before ``end`` in one call; return how many were taken, and errno if none.

        The kernel takes at most 1,024 per call, and stops before a packet that it refuses.
        """
        at = ctypes.c_void_p(self.headers_at + first * MMSGHDR.itemsize)
        taken = libc.sendmmsg(fd, at, end - first, MSG_DONTWAIT)
        return (int(taken), 0) if taken >= 0 else (0, ctypes.get_errno())

    def place(self, row: int, head: bytes, fill_bytes: int = 0, tail: bytes = b"") -> None:
        """Set ``row`` to the packet of these three pieces; its destination does not change."""
        at = row * HEAD_BYTES
        self._head_bytes[at : at + len(head)] = head
        at = row * TAIL_BYTES
        self._tail_bytes[at : at + len(tail)] = tail
        lengths = self._words
        lengths[row, 1], lengths[row, 3], lengths[row, 5] = len(head), fill_bytes, len(tail)

    def address(self, row: int, name: bytes) -> None:
        """Set the destination of ``row``, a ``sockaddr``."""
        at = row * self._name_size
        self._name_bytes[at : at + self._name_size] = name

    def bring_forward(self, first: int, end: int, to: int) -> None:
        """Move the rows from ``first`` to before ``end`` to ``to``, which is not after ``first``."""
        for part in (self.heads, self.tails, self.names, self.lengths):
            part[to : to + end - first] = part[first:end]  # numpy copies as if there were no overlap
