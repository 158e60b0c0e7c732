"""Batch bursts of items and handle each batch once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_GATHER_S = 0.1
"""Delay after the first item: by then BGP has informed all switches, and unreachable queue pairs have moved."""

T = TypeVar("T")


class Gathering(Generic[T]):
    """Batcher that calls ``then`` with all items added within 100 ms of the first."""

    def __init__(self, then: Callable[[set[T]], Awaitable[None]]) -> None:
        self._then = then
        self._added: set[T] = set()
        self._pending: asyncio.Task[None] | None = None

    def add(self, item: T) -> None:
        """Add an item to the current batch."""
        self._added.add(item)
        if self._pending is None or self._pending.done():
            self._pending = asyncio.ensure_future(self._go())

    def stop(self) -> None:
        """Cancel the pending batch. Raises the error of ``then``, which is reported nowhere else."""
        if self._pending is None or self._pending.cancel() or self._pending.cancelled():
            return
        if (error := self._pending.exception()) is not None:
            raise error

    async def _go(self) -> None:
        while self._added:
            await asyncio.sleep(_GATHER_S)
            added, self._added = self._added, set()
            await self._then(added)
