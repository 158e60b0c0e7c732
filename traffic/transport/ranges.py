"""Sets of packet sequence numbers, and their 24-bit form on the wire. PURE.

Inside, a PSN is absolute and never wraps; the wire carries its lowest 24 bits (IBTA vol. 1, 9.7.2).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import itemgetter

PSN_MASK = 0xFFFFFF
_HALF = 1 << 23

_START = itemgetter(0)
_STOP = itemgetter(1)


def absolute(psn24: int, near: int) -> int:
    """Return the absolute PSN nearest to ``near`` that is ``psn24`` on the wire."""
    return near + ((psn24 - near + _HALF) & PSN_MASK) - _HALF


class Ranges:
    """A set of integers as sorted, disjoint ranges from start to before stop. Few ranges are cheap.

    ``parts`` is to be read only; the set is empty if it is.
    """

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[tuple[int, int]] = []

    def add(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Add a range (not empty); return the parts of it that were missing."""
        parts = self.parts
        low = bisect_left(parts, start, key=_STOP)
        high = bisect_right(parts, stop, lo=low, key=_START)
        new, at = [], start
        for there, end in parts[low:high]:
            if at < there:
                new.append((at, there))
            at = max(at, end)
        if at < stop:
            new.append((at, stop))
        if low < high:
            start, stop = min(start, parts[low][0]), max(stop, at)
        parts[low:high] = [(start, stop)]
        return new

    def gaps(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges between ``start`` and ``stop`` that are missing."""
        for there, end in self.parts[bisect_right(self.parts, start, key=_STOP) :]:
            if there >= stop:
                break
            if start < there:
                yield start, there
            start = end
        if start < stop:
            yield start, stop

    def trim(self, below: int) -> None:
        """Remove everything lower than ``below``."""
        parts = self.parts
        gone = bisect_right(parts, below, key=_STOP)
        del parts[:gone]
        if parts and parts[0][0] < below:
            parts[0] = (below, parts[0][1])
