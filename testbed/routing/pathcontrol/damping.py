"""Damping, pure: a flapping destination is trusted again only after a hold, which doubles each time.

A hold-down with exponential back-off instead of the decaying penalty of RFC 2439: the same effect, but the hold time
of a destination is one explicit number. The first loss costs nothing, so a single failure and its repair are as fast
as without damping.
"""

from __future__ import annotations

from dataclasses import dataclass

FORGET_FACTOR = 2
"""After this many times the longest hold without a loss, the record is cleared."""

_MOST_DOUBLINGS = 40

Key = tuple[str, str]
"""Member port and destination."""


@dataclass(slots=True)
class _Record:
    losses: int = 1
    back_ns: int | None = None  # time of its return; None while it is away


class Damper:
    """Losses and holds of one NIC's destinations, per member port. Its size is bounded by recent losses."""

    def __init__(self, hold_ms: int, hold_max_ms: int) -> None:
        """Set the hold after the second loss, ``hold_ms``, 0 for no damping; it doubles up to ``hold_max_ms``."""
        self._hold_ns = hold_ms * 1_000_000
        self._max_ns = max(hold_ms, hold_max_ms) * 1_000_000
        self._records: dict[Key, _Record] = {}
        self._held: dict[Key, int] = {}  # end of each hold

    @property
    def deadline_ns(self) -> int | None:
        """End of the next hold; None without holds."""
        return min(self._held.values(), default=None)

    @property
    def size(self) -> int:
        """Number of destinations with a record."""
        return len(self._records)

    def lost(self, key: Key, now_ns: int) -> None:
        """Record a loss. A repeated report changes nothing."""
        if not self._hold_ns:
            return
        record = self._records.get(key)
        if record is None or self._is_old(record, now_ns):
            self._records[key] = _Record()
        elif record.back_ns is not None:
            record.losses, record.back_ns = record.losses + 1, None
        self._held.pop(key, None)

    def back(self, key: Key, now_ns: int) -> int:
        """Record a return; return the length of its hold in ns (0: none)."""
        record = self._records.get(key)
        if record is None or record.back_ns is not None:
            return 0
        record.back_ns = now_ns
        hold_ns = self._hold_after(record.losses)
        if hold_ns:
            self._held[key] = now_ns + hold_ns
        return hold_ns

    def holds(self, key: Key) -> bool:
        """Return True if it is back but still held."""
        return key in self._held

    def release(self, now_ns: int) -> list[Key]:
        """End the holds that are due, and return them."""
        due = [key for key, until_ns in self._held.items() if until_ns <= now_ns]
        for key in due:
            del self._held[key]
        return due

    def expire(self, now_ns: int) -> None:
        """Drop records of destinations that have stayed long enough."""
        for key in [key for key, record in self._records.items() if self._is_old(record, now_ns)]:
            del self._records[key]

    def forget(self, key: Key) -> None:
        """Drop the record of a destination that is no longer of interest."""
        self._records.pop(key, None)
        self._held.pop(key, None)

    def _hold_after(self, losses: int) -> int:
        return 0 if losses < 2 else min(self._hold_ns << min(losses - 2, _MOST_DOUBLINGS), self._max_ns)

    def _is_old(self, record: _Record, now_ns: int) -> bool:
        return record.back_ns is not None and now_ns - record.back_ns >= FORGET_FACTOR * self._max_ns
