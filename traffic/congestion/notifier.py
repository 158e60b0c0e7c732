"""DCQCN's notification point: marked packets arrive, congestion notification packets (CNPs) go back. Pure.

Zhu et al., Congestion Control for Large-Scale RDMA Deployments (SIGCOMM 2015), section 3. The receiver of a marked
packet sends a CNP for its flow unless it sent one within the last interval. A CNP is ready ``delay_ns`` after the
packet that caused it: real adapters need some 55 us, the interval may be shorter.
"""

from __future__ import annotations

from collections import deque


class Notifier:
    """CNP timing of one queue pair. The caller sends one CNP each time ``on_timer`` returns True."""

    def __init__(self, interval_ns: int, delay_ns: int) -> None:
        """Create the notifier; at least ``interval_ns``, above 0, from one CNP to the next."""
        self._interval_ns = interval_ns
        self._delay_ns = delay_ns
        self._quiet_until_ns: int | None = None
        self._due: deque[int] = deque()  # at most delay / interval + 1

    def on_marked(self, now_ns: int) -> None:
        """Handle packets that arrived now, of which at least one carried a congestion mark (IP ECN 11)."""
        if self._quiet_until_ns is None or now_ns >= self._quiet_until_ns:
            self._quiet_until_ns = now_ns + self._interval_ns
            self._due.append(now_ns + self._delay_ns)

    def next_ns(self) -> int | None:
        """Return when the next CNP is ready; None: there is none."""
        return self._due[0] if self._due else None

    def on_timer(self, now_ns: int) -> bool:
        """Return True if a CNP is to be sent now. A late caller sends one: an adapter would not send two at once."""
        ready = False
        while self._due and self._due[0] <= now_ns:
            self._due.popleft()
            ready = True
        return ready
