"""A port at rest: its partner says every second what it said before, and so does the port.

Nothing else is to be done then but to notice when that ends, which whoever has its wire can do alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Resting:
    """What such a port says and hears. Times of CLOCK_MONOTONIC."""

    said: bytes
    heard: bytes
    until_ns: int
    """When the partner has been silent for too long, unless it is heard before."""
    due_ns: int
    """When it is to be said next, and every second from then on."""


@dataclass(frozen=True, slots=True)
class Rested:
    """What became of it: ``until_ns`` and ``due_ns`` as they are now, and when it was said last; None: not at all."""

    until_ns: int
    due_ns: int
    said_ns: int | None


@runtime_checkable
class RestingWire(Protocol):
    """An open port that can say and hear the same by itself."""

    def rest(self, resting: Resting, wake: Callable[[], None]) -> None:
        """Do so until ``wake_up``; call ``wake`` when the partner was silent. What else is heard is handed on."""

    def wake_up(self) -> Rested:
        """End it."""
