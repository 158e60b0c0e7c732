"""A port at rest: its partner sends the same LACPDU every second, and so does the port.

The only remaining task is to detect when that ends, which the owner of its wire can do alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Resting:
    """LACPDUs that such a port sends and expects. Times of CLOCK_MONOTONIC."""

    said: bytes
    heard: bytes
    until_ns: int
    """Time at which the partner has been silent for too long, unless it is heard before."""
    due_ns: int
    """Time of the next transmission, repeated every second."""


@dataclass(frozen=True, slots=True)
class RestHistory:
    """History of a rest: current ``until_ns`` and ``due_ns``, and the last transmission; None: there was none."""

    until_ns: int
    due_ns: int
    said_ns: int | None


@runtime_checkable
class RestingWire(Protocol):
    """An open port that can send and expect the same LACPDU by itself."""

    def rest(self, resting: Resting, wake: Callable[[], None]) -> None:
        """Do so until ``wake_up``; call ``wake`` when the partner was silent. Other frames are delivered."""

    def wake_up(self) -> RestHistory:
        """End the rest and return its history."""
