"""News that come in bursts: answered once, and what goes wrong with the answer is heard of."""

from __future__ import annotations

import asyncio

import pytest

from hpn.scenarios.run import batching
from hpn.scenarios.run.batching import Gathering


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "_GATHER_S", 0)


async def _answered() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_burst_is_answered_once_with_all_of_it() -> None:
    heard: list[set[str]] = []

    async def then(found: set[str]) -> None:
        heard.append(found)

    news = Gathering(then)
    for name in ("a", "b", "a"):
        news.add(name)
    await _answered()
    news.add("c")
    await _answered()
    assert heard == [{"a", "b"}, {"c"}]
    news.stop()


async def test_what_is_under_way_is_dropped() -> None:
    async def then(_found: set[str]) -> None:
        await asyncio.sleep(3600)

    news = Gathering(then)
    news.add("a")
    await _answered()
    news.stop()
    await _answered()
    news.stop()


async def test_an_answer_that_fails_is_told_to_whoever_stops_it() -> None:
    async def then(_found: set[str]) -> None:
        raise OSError("no such namespace")

    news = Gathering(then)
    news.add("a")
    await _answered()
    with pytest.raises(OSError, match="no such namespace"):
        news.stop()
