"""How a lab's supervisor obeys who ends it: in order, or at once when its event loop does not come to that in time.

A loop that a large lab keeps busy would be killed after some seconds, and the kernel closes the packet sockets of a
killed process one after another, 15 ms each: a segment took 10 s to go. Handlers of Python's own run between any two
steps of the program, whatever the loop is at.
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
    """Have SIGTERM, SIGINT and SIGHUP set ``end`` of the running loop, and end the process ``PATIENCE_S`` later."""
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
    with suppress(OSError):  # where it is no file
        os.ftruncate(2, 0)  # the log: it was asked to end, so this is nothing that it died of
    os._exit(0)
