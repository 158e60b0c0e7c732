"""Deadlines of queue pair ends: a heap that wakes an end when it is due, or earlier for nothing. PURE."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

E = TypeVar("E")


class Deadlines(Generic[E]):
    """Deadlines of ends, by identity; an entry may be too early, never too late."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, E]] = []
        self._armed: dict[int, int] = {}  # by identity: the earliest entry of each
        self._entries = 0

    def arm(self, end: E, due_ns: int | None) -> None:
        """Wake this end at ``due_ns``; None: nothing is to come. A deadline that moves back keeps its earlier entry."""
        if due_ns is None:
            return
        armed_ns = self._armed.get(id(end))
        if armed_ns is None or due_ns < armed_ns:
            self._armed[id(end)] = due_ns
            self._entries += 1
            heappush(self._heap, (due_ns, self._entries, end))

    def take(self, now_ns: int) -> E | None:
        """Return the next end whose entry is due, and disarm it; None: there is none."""
        if not self._heap or self._heap[0][0] > now_ns:
            return None
        _, _, end = heappop(self._heap)
        self._armed.pop(id(end), None)
        return end

    def next_ns(self) -> int | None:
        """Return when the earliest entry is due; None: there is none."""
        return self._heap[0][0] if self._heap else None

    def clear(self) -> None:
        """Forget all entries."""
        self._heap.clear()
