"""The timeline of a lab: who hears of its events, and who waits until they have made something true.

Changes when news of a lab has to reach somebody in another way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventSink


class Timeline:
    """Events of one lab as they come in; belongs to one asyncio loop."""

    def __init__(self, sink: EventSink) -> None:
        self._sinks: list[EventSink] = [sink]
        self._tick = asyncio.Event()

    def emit(self, event: Event) -> None:
        """Tell every listener of an event and wake whoever waits for the lab's state."""
        self._tick.set()  # who waits looks when this callback is over, also when a listener fails
        for sink in self._sinks:
            sink(event)

    def touch(self) -> None:
        """Wake whoever waits: the lab's state has changed in a way that is no event."""
        self._tick.set()

    def subscribe(self, sink: EventSink) -> Callable[[], None]:
        """Hear of every event from now on; call the result to stop."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    async def wait_for(
        self, condition: Callable[[], bool], timeout_s: float, lost: Callable[[], str | None] = lambda: None
    ) -> None:
        """Look at ``condition`` after every event until it holds.

        TimeoutError when it does not in time, MachineError with what ``lost`` says when that is something.
        """
        # Not asyncio.wait_for: in Python 3.11 it can swallow the cancellation that Ctrl-C is.
        async with asyncio.timeout(timeout_s):
            while not condition():
                trouble = lost()
                if trouble is not None:
                    raise MachineError(trouble)
                self._tick.clear()
                await self._tick.wait()
