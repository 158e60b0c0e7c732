"""Retries while something is missing: after 0.2 s, then with doubled intervals up to 1.6 s."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

FIRST_S, LONGEST_S = 0.2, 1.6
"""RFC 1122 2.3.2.1 limits ARP requests for one address to about one a second: this is slower from the third on."""


class Retry:
    """Caller of ``again`` with back-off, on the running event loop, until stopped. It never gives up by itself."""

    def __init__(self, again: Callable[[], None]) -> None:
        self._again = again
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start to wait, at the shortest interval; no-op if it is running."""
        if self._timer is None:
            self._wait(FIRST_S)

    def stop(self) -> None:
        """Stop calling. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, interval_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(interval_s, self._due, interval_s)

    def _due(self, interval_s: float) -> None:
        self._wait(min(2 * interval_s, LONGEST_S))  # first, so that ``again`` may stop it
        self._again()
