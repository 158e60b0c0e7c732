"""Termination of a lab's supervisor: orderly, or immediate when its event loop does not react in time.

A busy loop of a large lab would be killed after some seconds. The kernel closes the packet sockets of a killed process
one after another, 15 ms each: a segment took 10 s to end. Python's own signal handlers run between any two steps of the
program, whatever the loop does.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from hpn.testbed.kernel.packets.packet import close_all

PATIENCE_S = 1.0


def obey(end: asyncio.Event) -> None:
    """Make SIGTERM, SIGINT and SIGHUP set ``end`` of the running loop, and end the process ``PATIENCE_S`` later."""
    loop = asyncio.get_running_loop()

    def asked(_number: int, _frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
        if not loop.is_closed():
            loop.call_soon_threadsafe(end.set)

    signal.signal(signal.SIGALRM, _end_at_once)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, asked)


def _end_at_once(_number: int, _frame: FrameType | None) -> NoReturn:
    close_all()
    with suppress(OSError):  # if it is not a file
        os.ftruncate(2, 0)  # the log: the end was requested, so no output explains a failure
    os._exit(0)
