"""The link monitor alone: what it reports, and what is over before it looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hpn.testbed.lag.miimon import Delays, MiiMonitor

PERIOD_S = 0.02
NONE = Delays()


class Reports(list[tuple[str, bool]]):
    """What was reported, in order."""

    def __call__(self, port: str, up: bool) -> None:
        self.append((port, up))

    async def have(self, many: int) -> None:
        async with asyncio.timeout(10):
            while len(self) < many:
                await asyncio.sleep(PERIOD_S / 4)


def monitor(
    period_s: float, delays: Delays = NONE, unused: Callable[[], bool] = lambda: False
) -> tuple[MiiMonitor, Reports]:
    found = Reports()
    made = MiiMonitor(period_s, found, delays, unused)
    made.start()
    for port in ("a", "b"):
        made.carrier(port, True)
    assert found == [("a", True), ("b", True)], "as the driver looks at a port that it enslaves"
    found.clear()
    return made, found


async def test_a_change_is_reported_at_the_next_look_and_once() -> None:
    made, found = monitor(PERIOD_S)
    made.carrier("b", False)
    made.carrier("a", False)
    assert found == []
    await found.have(2)
    assert found == [("a", False), ("b", False)]
    made.carrier("a", True)
    await found.have(3)
    assert found[2:] == [("a", True)]


async def test_what_is_over_by_the_next_look_is_never_reported() -> None:
    made, found = monitor(PERIOD_S)
    made.carrier("a", False)
    made.carrier("a", True)
    made.carrier("b", False)
    await found.have(1)
    assert found == [("b", False)]


async def test_without_looks_every_change_is_reported_at_once() -> None:
    made, found = monitor(0)
    made.carrier("a", False)
    made.carrier("a", True)
    assert found == [("a", False), ("a", True)]


async def test_a_closed_monitor_looks_no_more() -> None:
    made, found = monitor(PERIOD_S)
    made.carrier("a", False)
    made.close()
    await asyncio.sleep(2 * PERIOD_S)
    assert found == []


async def test_delays_are_looks_and_each_change_has_its_own() -> None:
    made, found = monitor(PERIOD_S, Delays(up=3, down=1))
    loop = asyncio.get_running_loop()
    began = loop.time()
    made.carrier("a", False)
    await found.have(1)
    down_s, began = loop.time() - began, loop.time()
    assert found == [("a", False)]
    assert down_s > PERIOD_S, "the look that found it, and one more"
    made.carrier("a", True)
    await found.have(2)
    assert found[1:] == [("a", True)]
    assert loop.time() - began > 3 * PERIOD_S


async def test_a_change_that_is_over_within_its_delay_is_never_reported_and_waits_anew() -> None:
    made, found = monitor(PERIOD_S, Delays(down=50))
    made.carrier("a", False)
    await asyncio.sleep(3 * PERIOD_S)
    made.carrier("a", True)
    made.carrier("b", False)
    await found.have(1)
    assert found == [("b", False)]


async def test_a_port_that_returns_to_a_lag_without_another_need_not_wait() -> None:
    made, found = monitor(PERIOD_S, Delays(up=10_000), unused=lambda: True)
    made.carrier("a", False)
    await found.have(1)
    made.carrier("a", True)
    await found.have(2)
    assert found == [("a", False), ("a", True)]
