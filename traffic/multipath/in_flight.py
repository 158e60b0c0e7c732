"""Packets of a multipath queue pair that are under way, and the congestion window that its ports share. PURE.

Each port has an equal part of the window. With one for all, the port that is served first would take what there is.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

_PARTS = 2  # of a window, for each of which an acknowledgement is requested

Places = npt.NDArray[np.intp]


class InFlight:
    """Number of packets under way by the port that they left by. Slots as in ``MultipathRequester``."""

    def __init__(self, slots: int) -> None:
        self._port = np.zeros(slots, np.intp)
        self._packets: Counter[int] = Counter()
        self._window = 0  # packets; 0: none
        self._unasked = 0  # sent since an acknowledgement was last requested for the window's sake

    @property
    def total(self) -> int:
        """Packets under way by all ports."""
        return self._packets.total()

    def set_window(self, packets: int) -> None:
        """Allow so many packets under way from now on, and at least one by each port."""
        self._window = max(packets, 1)

    def room(self, port: int, ports: int, most: int) -> int:
        """Return how many packets may leave by ``port`` now, of ``most``, if ``ports`` share the window."""
        return min(most, max(self._window // ports, 1) - self._packets[port]) if self._window else most

    def left(self, slots: Places, port: int) -> bool:
        """Note packets that leave by a port; return True if the last is to request an acknowledgement."""
        self._port[slots] = port
        self._packets[port] += len(slots)
        self._unasked += len(slots)
        asks = 0 < self._window <= _PARTS * self._unasked
        if asks:
            self._unasked = 0
        return asks

    def landed(self, slots: Places) -> None:
        """Note packets that are no longer under way."""
        self._packets.subtract(self._port[slots].tolist())

    def clear(self) -> None:
        """Note that nothing is under way."""
        self._packets.clear()
