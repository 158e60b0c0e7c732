"""Link monitoring as Linux bonding does it (miimon): carrier is looked at at intervals, LACP learns that much later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class MiiMonitor:
    """Reports a port's carrier at the next look; what is over by then is never reported.

    ``period_s`` 0: there are no looks, every change is reported at once. The first report of a port is immediate too,
    as the driver looks at a port that it enslaves.
    """

    def __init__(self, period_s: float, report: Callable[[str, bool], None]) -> None:
        self._period_s = period_s
        self._report = report
        self._carrier: dict[str, bool] = {}
        self._seen: dict[str, bool] = {}
        self._began_s = 0.0
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin the series of looks."""
        self._began_s = asyncio.get_running_loop().time()

    def carrier(self, port: str, up: bool) -> None:
        """Take a change of carrier; the timer runs only while one waits for a look."""
        self._carrier[port] = up
        if not self._period_s or port not in self._seen:
            self._look_at(port)
        elif self._next is None:
            loop = asyncio.get_running_loop()
            looks = (loop.time() - self._began_s) // self._period_s + 1
            self._next = loop.call_at(self._began_s + looks * self._period_s, self._look)

    def close(self) -> None:
        """Stop looking."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _look(self) -> None:
        self._next = None
        for port in self._carrier:
            if self._carrier[port] != self._seen[port]:
                self._look_at(port)

    def _look_at(self, port: str) -> None:
        self._seen[port] = self._carrier[port]
        self._report(port, self._carrier[port])
