"""Damping, pure: what keeps going away is trusted again only after it has stayed for a while, each time twice as long.

A hold-down with exponential back-off in place of the decaying penalty of RFC 2439: the same effect, but the time that
a destination is held is one number that can be read off. The first loss costs nothing, so a single failure and its
repair are as fast as without damping.
"""

from __future__ import annotations

from dataclasses import dataclass

FORGET_FACTOR = 2
"""What stayed for this many times the longest hold is as good as new."""

_MOST_DOUBLINGS = 40

Key = tuple[str, str]
"""Member port and destination."""


@dataclass(slots=True)
class _Record:
    losses: int = 1
    back_ns: int | None = None  # since when it has been back; None while it is away


class Damper:
    """The losses and holds of one NIC's destinations, per member port. Its size is that of what was lost lately."""

    def __init__(self, hold_ms: int, hold_max_ms: int) -> None:
        """``hold_ms`` is the hold after the second loss, 0 for no damping; it doubles up to ``hold_max_ms``."""
        self._hold_ns = hold_ms * 1_000_000
        self._max_ns = max(hold_ms, hold_max_ms) * 1_000_000
        self._records: dict[Key, _Record] = {}
        self._held: dict[Key, int] = {}  # until when

    @property
    def deadline_ns(self) -> int | None:
        """When the next hold ends; None when nothing is held."""
        return min(self._held.values(), default=None)

    @property
    def size(self) -> int:
        """Destinations remembered."""
        return len(self._records)

    def lost(self, key: Key, now_ns: int) -> None:
        """It went away. Saying so twice changes nothing."""
        if not self._hold_ns:
            return
        record = self._records.get(key)
        if record is None or self._is_old(record, now_ns):
            self._records[key] = _Record()
        elif record.back_ns is not None:
            record.losses, record.back_ns = record.losses + 1, None
        self._held.pop(key, None)

    def back(self, key: Key, now_ns: int) -> int:
        """It came back: for how many ns it is held (0: not at all)."""
        record = self._records.get(key)
        if record is None or record.back_ns is not None:
            return 0
        record.back_ns = now_ns
        hold_ns = self._hold_after(record.losses)
        if hold_ns:
            self._held[key] = now_ns + hold_ns
        return hold_ns

    def holds(self, key: Key) -> bool:
        """Whether it is back but not yet trusted."""
        return key in self._held

    def release(self, now_ns: int) -> list[Key]:
        """End the holds that are due, and say which."""
        due = [key for key, until_ns in self._held.items() if until_ns <= now_ns]
        for key in due:
            del self._held[key]
        return due

    def expire(self, now_ns: int) -> None:
        """Forget what has stayed for long."""
        for key in [key for key, record in self._records.items() if self._is_old(record, now_ns)]:
            del self._records[key]

    def forget(self, key: Key) -> None:
        """Nobody wants to know any more."""
        self._records.pop(key, None)
        self._held.pop(key, None)

    def _hold_after(self, losses: int) -> int:
        return 0 if losses < 2 else min(self._hold_ns << min(losses - 2, _MOST_DOUBLINGS), self._max_ns)

    def _is_old(self, record: _Record, now_ns: int) -> bool:
        return record.back_ns is not None and now_ns - record.back_ns >= FORGET_FACTOR * self._max_ns
