"""The link monitor alone: what it reports, and what is over before it looks."""

from __future__ import annotations

import asyncio

from hpn.testbed.lag.miimon import MiiMonitor

PERIOD_S = 0.02


class Reports(list[tuple[str, bool]]):
    """What was reported, in order."""

    def __call__(self, port: str, up: bool) -> None:
        self.append((port, up))

    async def have(self, many: int) -> None:
        async with asyncio.timeout(10):
            while len(self) < many:
                await asyncio.sleep(PERIOD_S / 4)


def monitor(period_s: float) -> tuple[MiiMonitor, Reports]:
    found = Reports()
    made = MiiMonitor(period_s, found)
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
