"""io_uring(7): many requests in one system call, which can also wait until a deadline.

In a guest every system call costs as much as several packets (some 8 us where the kernel runs as a process). So a tick
makes as few system calls as possible. It needs Linux 6.12, for a wait until an absolute time, and is often forbidden in
containers. Callers need a fallback for both cases.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os

import numpy as np
import numpy.typing as npt

from hpn.testbed.kernel.ns import libc

REQUEST = np.dtype(
    [
        ("operation", "u1"),
        ("flags", "u1"),
        ("priority", "u2"),
        ("fd", "i4"),
        ("offset", "u8"),
        ("address", "u8"),
        ("length", "u4"),
        ("how", "u4"),  # flags of the operation itself
        ("mark", "u8"),  # comes back in the completion
        ("rest", "u8", 3),
    ]
)
"""struct io_uring_sqe."""

DONE = np.dtype([("mark", "u8"), ("result", "i4"), ("flags", "u4")])
"""struct io_uring_cqe; ``result`` is the return value of the system call, or minus its errno."""

Requests = npt.NDArray[np.void]
Done = npt.NDArray[np.void]

_RAW_REQUEST = np.dtype(f"V{REQUEST.itemsize}")
"""``REQUEST`` without its fields, which numpy would copy one by one."""

SEND_MESSAGE, RECEIVE_MESSAGE, WATCH = 9, 10, 6  # IORING_OP_SENDMSG, RECVMSG, POLL_ADD
LINKED = 1 << 2
"""IOSQE_IO_LINK: the next request waits for this one, and is cancelled when this one fails."""
QUIET = 1 << 6
"""IOSQE_CQE_SKIP_SUCCESS: a completion only on failure; requests cancelled by it have no completion."""

_SETUP, _ENTER = 425, 426  # system calls, the same on every architecture
_SINGLE_ISSUER, _DEFER_TASKRUN = 1 << 12, 1 << 13
_SINGLE_MMAP, _CQE_SKIP = 1 << 0, 1 << 11  # features
_GET_EVENTS, _EXTENDED, _ABSOLUTE = 1 << 0, 1 << 3, 1 << 5
_REQUESTS_AT = 0x10000000
_NS_PER_S = 10**9
_WAIT_BYTES = ctypes.c_size_t(24)  # the last argument is on the stack, where an int would leave half of it unset


class Ring:
    """Queues of ``entries`` requests and twice as many completions, for one thread.

    OSError where the kernel has no io_uring, is older than 6.12 or does not allow it.
    """

    def __init__(self, entries: int) -> None:
        self.entries = entries
        params = np.zeros(30, np.uint32)
        params[2] = _SINGLE_ISSUER | _DEFER_TASKRUN
        self._fd = libc.syscall(_SETUP, entries, ctypes.c_void_p(params.ctypes.data))
        if self._fd < 0:
            raise _error("io_uring_setup")
        try:
            self._map(params)
            self._enter(0, 0, _GET_EVENTS | _EXTENDED | _ABSOLUTE)
        except OSError:
            self.close()
            raise
        self._filled = self._taken = 0  # requests and completions so far

    def _map(self, params: npt.NDArray[np.uint32]) -> None:
        if not params[5] & _SINGLE_MMAP or not params[5] & _CQE_SKIP:
            raise OSError(errno.ENOSYS, "io_uring lacks what is needed")
        entries, done = int(params[0]), int(params[1])
        own, theirs = params[10:20].tolist(), params[20:30].tolist()  # offsets: struct io_sqring_offsets, ...cq...
        size = max(own[6] + 4 * entries, theirs[5] + DONE.itemsize * done)
        access = mmap.PROT_READ | mmap.PROT_WRITE
        words = np.frombuffer(mmap.mmap(self._fd, size, mmap.MAP_SHARED, access), np.uint32, size // 4)
        requests = mmap.mmap(self._fd, entries * REQUEST.itemsize, mmap.MAP_SHARED, access, offset=_REQUESTS_AT)
        self._requests = np.frombuffer(requests, _RAW_REQUEST)
        words[own[6] // 4 : own[6] // 4 + entries] = np.arange(entries)
        self._words = words.data
        self._end_at, self._head_at, self._tail_at = own[1] // 4, theirs[0] // 4, theirs[1] // 4
        self._done = np.frombuffer(words.view(np.uint8), DONE, done, theirs[5])
        # ``until_ns`` is passed as struct io_uring_getevents_arg, which points to a struct timespec.
        self._until = np.zeros(2, np.int64)
        self._wait = np.zeros(3, np.uint64)
        self._wait[2] = self._until.ctypes.data
        self._wait_at = ctypes.c_void_p(self._wait.ctypes.data)

    def put(self, requests: Requests) -> None:
        """Add requests for the next ``enter``. ValueError when there are more of them than entries."""
        count, room = len(requests), len(self._requests)
        if count > room:
            raise ValueError(f"{count} requests for a ring of {room}")
        at = self._filled % room
        before = min(count, room - at)
        raw = requests.view(_RAW_REQUEST)
        self._requests[at : at + before] = raw[:before]
        if before < count:
            self._requests[: count - before] = raw[before:]
        self._filled += count

    def enter(self, least: int, until_ns: int | None = None) -> Done:
        """Submit all requests and wait for ``least`` completions; return all completions, in their order.

        With ``until_ns`` (CLOCK_MONOTONIC) the wait ends then, with the completions so far. OSError on failure.
        """
        if until_ns is not None:
            self._until[0], self._until[1] = divmod(until_ns, _NS_PER_S)
        added = (self._filled - self._words[self._end_at]) & 0xFFFFFFFF
        self._words[self._end_at] = self._filled & 0xFFFFFFFF
        flags = _GET_EVENTS if until_ns is None else _GET_EVENTS | _EXTENDED | _ABSOLUTE
        while (taken := self._enter(added, least, flags)) < added:
            added -= taken
        end = self._words[self._tail_at]
        count = (end - self._taken) & 0xFFFFFFFF
        at = self._taken % len(self._done)
        found = self._done[at : at + count]
        found = found.copy() if len(found) == count else np.concatenate([found, self._done[: count - len(found)]])
        self._taken += count
        self._words[self._head_at] = end
        return found

    def _enter(self, added: int, least: int, flags: int) -> int:
        """Return how many requests the kernel took. A wait that ended early counts as ended."""
        at = self._wait_at if flags & _EXTENDED else None
        taken = libc.syscall(_ENTER, self._fd, added, least, flags, at, _WAIT_BYTES)
        if taken >= 0:
            return int(taken)
        if ctypes.get_errno() in (errno.ETIME, errno.EINTR):
            return 0
        raise _error("io_uring_enter")

    def close(self) -> None:
        """Close the queues; requests that were not submitted are dropped."""
        os.close(self._fd)


def open_ring(entries: int) -> Ring | None:
    """Return a ring, or None where this kernel has or allows none."""
    try:
        return Ring(entries)
    except OSError:
        return None


def _error(call: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{call}: {os.strerror(code)}")
