"""Bursts of many UDP sockets, handed over by one system call: sendmsg(2) as requests of an io_uring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hpn.traffic.io import uring
from hpn.traffic.io.mmsg import IOVEC, MMSGHDR, MSG_DONTWAIT
from hpn.traffic.io.uring import Ring


class Bursts:
    """Sender of slices of ``memory``, rows of bytes, to the socket addresses ``names``, each by a socket of its own.

    At most as many slices at a time as the ``ring`` has entries.
    """

    def __init__(self, ring: Ring, memory: npt.NDArray[np.uint8], names: Sequence[bytes]) -> None:
        self._ring = ring
        self._memory = memory  # its address goes to the kernel
        self._names = np.array([list(name) for name in names], np.uint8)
        self._pieces = np.zeros(ring.entries, IOVEC)
        self._headers = np.zeros(ring.entries, MMSGHDR)
        places = np.arange(ring.entries, dtype=np.uint64)
        self._headers["name_bytes"] = self._names.shape[1] if len(self._names) else 0
        self._headers["iov"] = self._pieces.ctypes.data + places * np.uint64(IOVEC.itemsize)
        self._headers["iov_count"] = 1
        self._requests = np.zeros(ring.entries, uring.REQUEST)
        self._requests["operation"], self._requests["length"] = uring.SEND_MESSAGE, 1
        self._requests["how"], self._requests["mark"] = MSG_DONTWAIT, places
        self._requests["address"] = self._headers.ctypes.data + places * np.uint64(MMSGHDR.itemsize)

    def send(self, fds: Sequence[int], to: Sequence[int], rows: Sequence[int], counts: Sequence[int]) -> list[int]:
        """Send ``counts`` rows of memory from each of ``rows`` on, in order; ``to``: the name of each by number.

        Return for each slice 0, or the errno with which the kernel refused it. OSError if the ring fails.
        """
        count, row_bytes = len(fds), self._memory.shape[1]
        pieces, requests = self._pieces[:count], self._requests[:count]
        pieces["base"] = self._memory.ctypes.data + np.array(rows, np.uint64) * np.uint64(row_bytes)
        pieces["length"] = np.array(counts, np.uint64) * np.uint64(row_bytes)
        of_name = np.array(to, np.uint64) * np.uint64(self._names.shape[1])
        self._headers["name"][:count] = self._names.ctypes.data + of_name
        requests["fd"] = fds
        self._ring.put(requests)
        results = np.zeros(count, np.int64)
        left = count
        while left:
            done = self._ring.enter(left)
            results[done["mark"].astype(np.intp)] = done["result"]
            left -= len(done)
        refused: list[int] = np.maximum(-results, 0).tolist()
        return refused
