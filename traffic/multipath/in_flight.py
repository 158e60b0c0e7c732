"""Number of packets of a multipath queue pair under way, and the congestion window that its ports share. PURE.

Each port has an equal part of the window. With one for all, the port that is served first would take what there is.
"""

from __future__ import annotations

from collections import defaultdict

_PARTS = 2  # of a window, for each of which an acknowledgement is requested


class InFlight:
    """Number of packets under way by the port that they left by; ``total`` by all."""

    def __init__(self) -> None:
        self.total = 0
        self._packets: defaultdict[int, int] = defaultdict(int)
        self._window = 0  # packets; 0: none
        self._unasked = 0  # sent since an acknowledgement was last requested for the window's sake

    def set_window(self, packets: int) -> None:
        """Allow so many packets under way from now on, and at least one by each port."""
        self._window = max(packets, 1)

    def room(self, port: int, ports: int, most: int) -> int:
        """Return how many packets may leave by ``port`` now, of ``most``, if ``ports`` share the window."""
        return min(most, max(self._window // ports, 1) - self._packets[port]) if self._window else most

    def left(self, packets: int, port: int) -> bool:
        """Note packets that leave by a port; return True if the last is to request an acknowledgement."""
        self.total += packets
        self._packets[port] += packets
        self._unasked += packets
        asks = 0 < self._window <= _PARTS * self._unasked
        if asks:
            self._unasked = 0
        return asks

    def landed(self, packets: int, port: int) -> None:
        """Note packets that are no longer under way, and by which port they had left."""
        self.total -= packets
        self._packets[port] -= packets

    def clear(self) -> None:
        """Note that nothing is under way."""
        self.total = 0
        self._packets.clear()
