"""One output pipe of a client, read as lines from the supervisor's loop at a bounded rate.

Changes when output is bounded in another way. Reading pauses while a client floods its output, so the pipe fills and
the client blocks in its own write. This bounds our memory and time, and in virtual time the clock advances.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from hpn.testbed.events import now_ns
from hpn.traffic.client.lines import Line, LineReader

_AT_ONCE = 1 << 14
_LINE_BYTES = 64
"""Cost of a line beyond its bytes: an empty line takes as much of our time as any other."""
_ROOM_BYTES = 1 << 20
_BYTES_PER_S = 1 << 20
_WAIT_S = 0.1
_LAST_BYTES = 1 << 20
"""Bytes still read after the client has ended: the capacity of a pipe (fs.pipe-max-size of an ordinary user)."""


class ClientOutput:
    """Reader that calls ``heard`` with each line of the non-blocking ``fd`` and the time at which it was read."""

    def __init__(self, fd: int, heard: Callable[[Line, int], None]) -> None:
        self._fd = fd
        self._heard = heard
        self._reader = LineReader()
        self._loop = asyncio.get_running_loop()
        self._room = float(_ROOM_BYTES)
        self._looked_ns = now_ns()
        self._open = True
        self._later: asyncio.TimerHandle | None = None
        self._loop.add_reader(fd, self._readable)

    def end(self) -> None:
        """Read what is left, then stop. The second call is a no-op."""
        if not self._open:
            return
        left = _LAST_BYTES
        while left > 0 and (data := _read(self._fd)):
            left -= len(data)
            self._feed(data, now_ns())
        self._stop()

    def _readable(self) -> None:
        data = _read(self._fd)
        at_ns = now_ns()
        if data is None:
            return
        if not data:
            self._stop()
            return
        self._feed(data, at_ns)
        cost = len(data) + _LINE_BYTES * data.count(b"\n")
        self._room = min(_ROOM_BYTES, self._room + (at_ns - self._looked_ns) / 1e9 * _BYTES_PER_S) - cost
        self._looked_ns = at_ns
        if self._room < 0:
            self._loop.remove_reader(self._fd)
            self._later = self._loop.call_later(_WAIT_S, self._go_on)

    def _go_on(self) -> None:
        self._later = None
        self._loop.add_reader(self._fd, self._readable)

    def _feed(self, data: bytes, at_ns: int) -> None:
        for line in self._reader.feed(data):
            self._heard(line, at_ns)

    def _stop(self) -> None:
        self._open = False
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._fd)
        for line in self._reader.end():
            self._heard(line, now_ns())


def _read(fd: int) -> bytes | None:
    """Return the available bytes; b'' at the end of the stream, None if no data is available now."""
    try:
        return os.read(fd, _AT_ONCE)
    except BlockingIOError:
        return None
