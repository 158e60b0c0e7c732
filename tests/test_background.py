"""What fails on an event loop where nobody awaits it ends whoever would wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hpn.testbed.background import ended_by_failures, in_background


def _fail() -> None:
    raise OSError("a callback failed")


async def _fails() -> None:
    await asyncio.sleep(0)
    raise ValueError("a task failed")


async def _waits_while(begin: Callable[[], object]) -> None:
    """For what never comes."""
    waited: list[str] = []
    try:
        with ended_by_failures():
            begin()
            await asyncio.wait({asyncio.ensure_future(asyncio.Event().wait())}, timeout=20)
            waited.append("until the deadline")
    finally:
        assert waited == []


async def test_a_callback_that_fails_ends_who_waits_for_what_it_should_have_done() -> None:
    with pytest.raises(OSError, match="a callback failed"):
        await _waits_while(lambda: asyncio.get_running_loop().call_soon(_fail))


async def test_a_task_in_the_background_that_fails_ends_it_as_well_and_the_first_failure_is_told() -> None:
    def begin() -> None:
        in_background(_fails()).add_done_callback(lambda _task: asyncio.get_running_loop().call_soon(_fail))

    with pytest.raises(ValueError, match="a task failed"):
        await _waits_while(begin)


async def test_a_task_in_the_background_that_ends_well_or_is_cancelled_ends_nobody() -> None:
    with ended_by_failures():
        in_background(asyncio.sleep(0))
        late = in_background(asyncio.sleep(3600))
        await asyncio.sleep(0)
        late.cancel()
        await asyncio.wait({late})


async def test_who_is_cancelled_by_somebody_else_is_cancelled() -> None:
    async def waits() -> None:
        with ended_by_failures():
            await asyncio.Event().wait()

    task = asyncio.ensure_future(waits())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
