"""Transports of port recovery's messages, and when each takes a port for working. PURE.

NCCL sends over a UC queue pair and wants more messages in a row than a batch has, so two batches at least. Adapters
without UC made RCCL take a UD queue pair (ROCm/rocm-systems PR 6145; net_ib_cast/p2p_resiliency_recovery.cc): one for
each connection and device as well, with an address handle and a Q_Key. Datagrams may overtake each other, so RCCL's
receiver wants one whole batch in any order. All timers are NCCL's. AMD's own adapters also exchange new queue pair
numbers in the acknowledgements (PR 6474); that is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hpn.testbed.entries import Registry


class Count(Protocol):
    """Alive messages that a receiver has counted; ``following`` is above every number that it has received."""

    following: int

    def completes(self, number: int) -> bool:
        """Count a message; return True if the port works."""

    def restart(self) -> None:
        """Forget the messages so far, but not their numbers."""


class InARow:
    """More than ``sequence`` messages in a row."""

    def __init__(self, sequence: int) -> None:
        self.following = 0
        self._sequence = sequence
        self._in_order = 0

    def completes(self, number: int) -> bool:
        """Count a message; a gap begins the count anew."""
        self._in_order = self._in_order + 1 if number == self.following else 0
        self.following = number + 1
        return self._in_order > self._sequence

    def restart(self) -> None:
        """Forget the messages so far."""
        self._in_order = 0


class WholeBatch:
    """A newest batch of ``sequence`` messages, whole and in any order."""

    def __init__(self, sequence: int) -> None:
        self.following = 0
        self._sequence = sequence
        self._batch = 0
        self._numbers: set[int] = set()

    def completes(self, number: int) -> bool:
        """Count a message; a newer batch begins the count anew, and an older one is ignored."""
        batch = number // self._sequence
        if batch < self._batch:
            return False
        if batch > self._batch:
            self._batch = batch
            self._numbers.clear()
        self._numbers.add(number)
        self.following = max(self.following, number + 1)
        return len(self._numbers) == self._sequence

    def restart(self) -> None:
        """Forget the messages so far."""
        self._numbers.clear()


@dataclass(frozen=True, slots=True)
class ProbeTransport:
    """A transport of port recovery's messages; ``count`` makes a receiver's count from the messages of a batch."""

    name: str
    summary: str
    datagrams: bool  # each packet names its sender and a Q_Key (UD), instead of a connection that knows them
    count: Callable[[int], Count]


PROBE_TRANSPORTS: Registry[ProbeTransport] = Registry(
    "transport of port recovery",
    lambda transport: transport.name,
    (
        ProbeTransport("uc", "an unreliable connection, as NCCL: two batches in a row", False, InARow),
        ProbeTransport("ud", "datagrams, as RCCL: one whole batch in any order", True, WholeBatch),
    ),
    of=ProbeTransport,
)
