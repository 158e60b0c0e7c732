"""A BGP daemon of two processes, of which the second follows the first one's words: they live and die together."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.model import Node, Role
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.process.processes import is_stopped
from hpn.testbed.routing.bgp import BgpDaemon

pytestmark = pytest.mark.kernel


class Pair(BgpDaemon):
    """``first`` says 'go', and ``second`` is started; what is ``meanwhile`` is done between the two."""

    TITLE = "PAIR"

    def __init__(self, emit: Callable[[Event], None]) -> None:
        super().__init__(Node("tor", Role.TOR, 0, 0), ns.current("home"), emit)
        self.meanwhile: Callable[[], None] = lambda: None

    def _launch(self) -> None:
        self._spawn("first", ["sh", "-c", "echo go; exec sleep 60"], self._heard)

    def _heard(self, line: str) -> None:
        assert line == "go"
        self.sessions.up("up0")
        self.meanwhile()
        self._spawn("second", ["sleep", "60"], self._heard)

    def withdraw(self) -> None:
        """Nothing to withdraw."""

    def announce(self) -> None:
        """Nothing to announce."""

    def reset(self, port: str) -> None:
        """Nothing to reset."""


async def started(meanwhile: Callable[[Pair], None], processes: int = 2) -> tuple[Pair, list[Event]]:
    """A pair whose first process has spoken."""
    events: list[Event] = []
    pair = Pair(events.append)
    pair.meanwhile = lambda: meanwhile(pair)
    pair.start()
    async with asyncio.timeout(10):
        while not told(events, EventKind.BGP) or len(pair.pids) < processes:
            await asyncio.sleep(0.005)
    return pair, events


def told(events: list[Event], kind: EventKind) -> list[tuple[str, str]]:
    """Subject and what happened to it."""
    return [(event.subject, event.what) for event in events if event.kind is kind]


async def test_one_that_dies_unasked_takes_the_other_and_is_named() -> None:
    pair, events = await started(lambda _pair: None)
    os.kill(max(pair.pids), signal.SIGTERM)
    async with asyncio.timeout(10):
        await pair.gone()
    assert not pair.running
    assert pair.trouble is not None
    assert pair.trouble.startswith("tor: PAIR (process ")
    assert pair.trouble.endswith("died, killed by signal 15: no word")
    died = [("second", "died"), ("first", "died")]
    assert told(events, EventKind.DAEMON) == [("first", "started"), ("second", "started"), *died]
    assert told(events, EventKind.BGP) == [("up0", "established"), ("up0", "down")]
    pair.start()
    assert pair.trouble is None
    pair.kill()
    await pair.gone()


async def test_who_is_frozen_while_it_starts_is_frozen_altogether() -> None:
    pair, _ = await started(lambda pair: pair.freeze())
    async with asyncio.timeout(10):
        while any(not is_stopped(pid) for pid in pair.pids):
            await asyncio.sleep(0.005)
    pair.kill()
    await pair.gone()


async def test_who_is_killed_while_it_starts_starts_no_more_of_itself() -> None:
    pair, events = await started(lambda pair: pair.kill(), processes=0)
    await pair.gone()
    assert told(events, EventKind.DAEMON) == [("first", "started"), ("first", "died")]
    assert pair.trouble is None
