"""Batched send and receive for all sockets of a worker at once, as requests of an io_uring."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hpn.traffic.io import uring
from hpn.traffic.io.mmsg import MMSGHDR, MSG_DONTWAIT
from hpn.traffic.io.recvmmsg import Batch, BatchReceiver
from hpn.traffic.io.sendmmsg import PacketRows
from hpn.traffic.io.uring import Requests, Ring

_SPARE = 2
"""Receives requested beyond the most expected: a refused one shows that the socket is empty."""
_SLACK = 8
"""Surplus below which the number of receives is not lowered, so that requests rarely change."""
_FADE = 1 / 64
"""Part by which the most expected shrinks each time: a refused receive costs far less than a second batch."""


class RingSender:
    """Sender of ``rows``, in order."""

    def __init__(self, ring: Ring, rows: PacketRows) -> None:
        self._ring = ring
        self._requests = _messages(uring.SEND_MESSAGE, rows.headers_at, rows.capacity)
        self._requests["flags"] = uring.LINKED | uring.QUIET
        # The same memory by field: a field look-up costs as much as a write.
        self._fds, self._flags = self._requests["fd"], self._requests["flags"].data

    def hand_over(self, segments: Sequence[tuple[int, int, int]]) -> int:
        """Send rows socket by socket: descriptor, first row, row after the last; the rows must be consecutive.

        Return the row that the kernel refused, from which on nothing is sent, or the row after the last. OSError on
        failure.
        """
        first, end = segments[0][1], segments[-1][2]
        self._fds[first:end] = np.repeat([fd for fd, _, _ in segments], [last - at for _, at, last in segments])
        self._flags[end - 1] = 0  # its completion shows that all before it are done
        self._ring.put(self._requests[first:end])
        self._flags[end - 1] = uring.LINKED | uring.QUIET
        done = self._ring.enter(1)
        while not len(done):
            done = self._ring.enter(1)
        return end if done["result"][0] >= 0 else int(done["mark"][0])


class RingReceiver:
    """Receiver of datagrams from ``sockets`` into the memory of ``into``; owners are indexes in ``sockets``.

    ``errors`` counts receive errors by name.
    """

    def __init__(self, ring: Ring, into: BatchReceiver, sockets: Sequence[int], errors: Counter[str]) -> None:
        self._ring = ring
        self._into = into
        self._errors = errors
        self._sockets = np.array(sockets, np.int32)
        self._most = max(into.capacity // max(len(sockets), 1), 1)
        self._asked = np.full(len(sockets), min(_SPARE, self._most))
        self._expected = np.zeros(len(sockets))  # most that arrived of late
        self._requests = _messages(uring.RECEIVE_MESSAGE, into.headers_at, into.capacity)
        self._ask()

    def _ask(self) -> None:
        self._owners = np.repeat(np.arange(len(self._sockets)), self._asked)
        self._requests["fd"][: len(self._owners)] = self._sockets[self._owners]

    def receive(self) -> tuple[Batch | None, bool]:
        """Receive what waits in the sockets; the second value is True if there may be more. OSError on failure."""
        count = len(self._owners)
        self._into.clear()
        self._ring.put(self._requests[:count])
        done = self._ring.enter(count)
        while len(done) < count:
            done = np.concatenate([done, self._ring.enter(count - len(done))])
        results = done["result"]
        came = results >= 0
        rows = done["mark"][came].astype(np.intp)
        if len(rows) < count:
            self._note(results[~came].tolist())
        owners = self._owners[rows]
        more = self._learn(np.bincount(owners, minlength=len(self._asked)))
        return self._into.chosen(rows, results[came].astype(np.uint32), owners) if len(rows) else None, more

    def _learn(self, counts: npt.NDArray[np.intp]) -> bool:
        """Request as many as arrived at most of late, and spares; return True if a socket filled all its requests."""
        full = counts >= self._asked
        more = bool(full.any())
        self._expected = np.maximum(counts, self._expected * (1 - _FADE))
        surplus = self._asked - self._expected > _SPARE + _SLACK
        if more or surplus.any():
            fewer = np.where(surplus, np.ceil(self._expected) + _SPARE, self._asked)
            self._asked = np.minimum(np.where(full, 2 * self._asked, fewer), self._most).astype(np.intp)
            self._ask()
        return more

    def _note(self, failed: Sequence[int]) -> None:
        for result in failed:
            if -result not in (errno.EAGAIN, errno.EINTR):
                self._errors[os.strerror(-result)] += 1


def _messages(operation: int, headers_at: int, count: int) -> Requests:
    """Return a request for each message header, marked with its index."""
    requests = np.zeros(count, uring.REQUEST)
    places = np.arange(count, dtype=np.uint64)
    requests["operation"], requests["length"], requests["how"] = operation, 1, MSG_DONTWAIT
    requests["address"] = headers_at + places * np.uint64(MMSGHDR.itemsize)
    requests["mark"] = places
    return requests


class Sleeper:
    """Sleeper until a deadline that wakes when ``fd`` is readable. OSError where io_uring is not available."""

    def __init__(self, fd: int) -> None:
        self._ring = Ring(2)
        self._watch = np.zeros(1, uring.REQUEST)
        self._watch["operation"], self._watch["fd"], self._watch["how"] = uring.WATCH, fd, 1  # POLLIN
        self._watched = False

    def until(self, at_ns: int) -> bool:
        """Sleep until ``at_ns`` (CLOCK_MONOTONIC) or until ``fd`` is readable; return True in the latter case."""
        if not self._watched:
            self._ring.put(self._watch)
            self._watched = True
        if len(self._ring.enter(1, at_ns)):
            self._watched = False
            return True
        return False
