"""The timeline of a lab: the subscribers to its events, and the waiters for a condition.

Changes when a lab's events must be delivered in another way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventSink


class Timeline:
    """Event stream of one lab; belongs to one asyncio loop."""

    def __init__(self, sink: EventSink) -> None:
        self._sinks: list[EventSink] = [sink]
        self._tick = asyncio.Event()

    def emit(self, event: Event) -> None:
        """Send an event to every subscriber and wake the waiters for the lab's state."""
        self._tick.set()  # waiters run after this callback, even if a subscriber fails
        for sink in self._sinks:
            sink(event)

    def touch(self) -> None:
        """Wake the waiters: the lab's state has changed without an event."""
        self._tick.set()

    def subscribe(self, sink: EventSink) -> Callable[[], None]:
        """Receive every event from now on; call the result to unsubscribe."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    async def wait_for(
        self, condition: Callable[[], bool], timeout_s: float, lost: Callable[[], str | None] = lambda: None
    ) -> None:
        """Evaluate ``condition`` after every event until it holds.

        TimeoutError when it does not in time, MachineError with the text of ``lost`` if that returns one.
        """
        # Not asyncio.wait_for: in Python 3.11 it can swallow the cancellation by Ctrl-C.
        async with asyncio.timeout(timeout_s):
            while not condition():
                trouble = lost()
                if trouble is not None:
                    raise MachineError(trouble)
                self._tick.clear()
                await self._tick.wait()
