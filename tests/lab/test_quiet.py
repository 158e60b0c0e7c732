"""A lab with configurations of its own is ready once routes and sessions are quiet, and all sessions stand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.lab import quiet
from hpn.testbed.lab.timeline import Timeline


class _Lab:
    """A timeline, and whether all sessions stand."""

    def __init__(self) -> None:
        self.timeline = Timeline(lambda event: None)
        self.stands = True

    def subscribe(self, sink: EventSink) -> Callable[[], None]:
        return self.timeline.subscribe(sink)

    def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> Awaitable[None]:
        return self.timeline.wait_for(condition, timeout_s, lambda: None)

    def say(self, kind: EventKind, stands: bool) -> None:
        self.stands = stands
        self.timeline.emit(Event(now_ns(), kind, "leaf1", "swp51", "changed"))


async def _told(monkeypatch: pytest.MonkeyPatch, *changes: tuple[float, EventKind, bool]) -> int:
    """Number of changes, each after so many seconds, that were told before the lab was ready."""
    monkeypatch.setattr(quiet, "QUIET_S", 0.4)
    lab, told = _Lab(), list[Event]()
    lab.subscribe(told.append)
    for after_s, kind, stands in changes:
        asyncio.get_running_loop().call_later(after_s, lab.say, kind, stands)
    await quiet.until_quiet(lab)
    return len(told)


def test_a_session_that_returns_may_bring_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = (0.2, EventKind.BGP, True), (0.5, EventKind.ROUTE, True)
    assert asyncio.run(_told(monkeypatch, *changes)) == 2


def test_a_session_that_ended_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = (0.1, EventKind.BGP, False), (1.1, EventKind.BGP, True)
    assert asyncio.run(_told(monkeypatch, *changes)) == 2
