"""Link monitoring as Linux bonding does it (miimon): carrier is looked at at intervals, LACP learns that much later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Delays:
    """The driver's updelay and downdelay, in looks: so many more must find a change before it is reported."""

    up: int = 0
    down: int = 0


class MiiMonitor:
    """Reports a port's carrier at the next look, or its delay later; what is over by then is never reported.

    ``period_s`` 0: there are no looks, every change is reported at once. The first report of a port is immediate too,
    as the driver looks at a port that it enslaves. While ``unused`` the LAG has no other port, and a port that returns
    need not wait (bond_miimon_inspect: ignore_updelay).
    """

    def __init__(
        self,
        period_s: float,
        report: Callable[[str, bool], None],
        delays: Delays = Delays(),
        unused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._period_s = period_s
        self._report = report
        self._delays = delays
        self._unused = unused
        self._carrier: dict[str, bool] = {}
        self._seen: dict[str, bool] = {}
        self._left: dict[str, int] = {}  # looks that a change still waits, by port
        self._began_s = 0.0
        self._number = 0  # of the last look
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
            self._look_again()

    def close(self) -> None:
        """Stop looking."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _look_again(self) -> None:
        loop = asyncio.get_running_loop()
        passed = (loop.time() - self._began_s) // self._period_s
        self._number = max(int(passed), self._number) + 1
        self._next = loop.call_at(self._began_s + self._number * self._period_s, self._look)

    def _look(self) -> None:
        self._next = None
        for port, up in self._carrier.items():
            if up == self._seen[port]:
                self._left.pop(port, None)
            elif self._over(port, up):
                self._look_at(port)
        if self._left and self._next is None:
            self._look_again()

    def _over(self, port: str, up: bool) -> bool:
        """Count one look at a change, and return True if it has waited for its delay."""
        left = self._left.pop(port, self._delays.up if up else self._delays.down)
        if left and not (up and self._unused()):
            self._left[port] = left - 1
            return False
        return True

    def _look_at(self, port: str) -> None:
        self._seen[port] = self._carrier[port]
        self._report(port, self._carrier[port])
