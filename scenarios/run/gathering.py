"""News that come in bursts, answered once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_GATHER_S = 0.1
"""After the first news: BGP has told all switches by then, and queue pairs that cannot be reached have moved."""

T = TypeVar("T")


class Gathering(Generic[T]):
    """Calls ``then`` with all that was added since the first of it, 100 ms after that."""

    def __init__(self, then: Callable[[set[T]], Awaitable[None]]) -> None:
        self._then = then
        self._added: set[T] = set()
        self._pending: asyncio.Task[None] | None = None

    def add(self, item: T) -> None:
        """News of this."""
        self._added.add(item)
        if self._pending is None or self._pending.done():
            self._pending = asyncio.ensure_future(self._go())

    def stop(self) -> None:
        """Drop what is under way. Raises what ``then`` has raised, which nobody else hears of."""
        if self._pending is None or self._pending.cancel() or self._pending.cancelled():
            return
        if (error := self._pending.exception()) is not None:
            raise error

    async def _go(self) -> None:
        while self._added:
            await asyncio.sleep(_GATHER_S)
            added, self._added = self._added, set()
            await self._then(added)
