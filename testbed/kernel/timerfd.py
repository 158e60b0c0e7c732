"""A periodic tick for event loops: timerfd(2), which Python offers only from 3.13 on."""

from __future__ import annotations

import asyncio
import ctypes
import os

from hpn.testbed.kernel.ns import libc

_CLOCK_MONOTONIC = 1
_TFD_TIMER_ABSTIME = 1
_NS_PER_S = 10**9


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Ticker:
    """Timer that is readable at ``first_ns``, ``first_ns + period_ns``, ... on CLOCK_MONOTONIC. OSError on failure."""

    def __init__(self) -> None:
        self.fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")

    def fileno(self) -> int:
        """Return the descriptor to watch."""
        return self.fd

    def start(self, first_ns: int, period_ns: int) -> None:
        """Tick from ``first_ns`` on (at once when that has passed)."""
        first = max(first_ns, 1)  # 0 would disarm the timer
        spec = _Itimerspec(
            _Timespec(period_ns // _NS_PER_S, period_ns % _NS_PER_S),
            _Timespec(first // _NS_PER_S, first % _NS_PER_S),
        )
        if libc.timerfd_settime(self.fd, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def take(self) -> int:
        """Return the number of ticks since the last call."""
        try:
            return int.from_bytes(os.read(self.fd, 8), "little")
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)


async def until(at_ns: int) -> None:
    """Wait until a moment on CLOCK_MONOTONIC. It is exact in virtual time; asyncio's timers round to 1 ms."""
    loop, ticker = asyncio.get_running_loop(), Ticker()
    due: asyncio.Future[None] = loop.create_future()

    def ring() -> None:
        loop.remove_reader(ticker.fd)
        due.set_result(None)

    loop.add_reader(ticker.fd, ring)
    try:
        ticker.start(at_ns, 0)
        await due
    finally:
        loop.remove_reader(ticker.fd)
        ticker.close()
