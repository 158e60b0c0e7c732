"""Wait until a lab's routes no longer change, where switches have configurations of their own.

Nobody can compute which routes these must have: the lab is ready when all sessions stand, and no route or session has
changed for ``QUIET_S``, which is longer than FRR's delay of a session's first UPDATE. Sessions that stand may end once
more: where both ends connect, as in BGP unnumbered, one connection is given up (RFC 4271 section 6.8).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sized
from functools import partial
from typing import Protocol

from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, EventSink, now_ns

QUIET_S = 1.5
_MOST_S = 60
_TELLING = (EventKind.ROUTE, EventKind.BGP)


class Changing(Protocol):
    """Something whose events tell of routes and sessions."""

    @property
    def stands(self) -> bool:
        """True if all sessions stand."""

    def subscribe(self, sink: EventSink) -> Callable[[], None]:
        """Receive every event from now on; call the result to unsubscribe."""

    def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> Awaitable[None]:
        """Evaluate ``condition`` after every event until it holds. TimeoutError when it does not in time."""


async def until_quiet(lab: Changing) -> None:
    """Wait for ``QUIET_S`` without a change while all stands. MachineError, naming the last change, after a minute."""
    changes: list[Event] = []
    unsubscribe = lab.subscribe(lambda event: changes.append(event) if event.kind in _TELLING else None)
    end_ns = now_ns() + _MOST_S * 10**9
    try:
        while now_ns() < end_ns:
            before = len(changes)
            try:
                await lab.wait_for(partial(_longer, changes, before), QUIET_S)
            except TimeoutError:
                if lab.stands:
                    return
    finally:
        unsubscribe()
    last = f", the last on {changes[-1].node}: {changes[-1].subject} {changes[-1].what}" if changes else ""
    raise MachineError(
        f"routes or sessions still change after {_MOST_S} s{last};"
        " look for configurations that take back what another announces"
    )


def _longer(changes: Sized, before: int) -> bool:
    return len(changes) > before
