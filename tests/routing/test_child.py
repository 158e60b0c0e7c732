"""A daemon's process: whatever goes wrong at its end, who waits for that end is told."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence

import pytest

from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.routing.child import Child

_SOON_S = 20.0


def _child(command: Sequence[str], heard: Callable[[str], None], died: Callable[[int], None]) -> Child:
    """In the namespace that this process is in."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return Child(command, NetNs("here", own), heard, died)
    finally:
        os.close(own)


def _fails(*_said: object) -> None:
    raise ValueError("an unexpected word")


@pytest.mark.kernel
async def test_a_daemon_whose_words_or_death_nobody_understands_is_seen_to_end() -> None:
    unforeseen: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unforeseen.append(context["exception"]))
    codes: list[int] = []
    speaks = _child(("sh", "-c", "echo goodbye"), _fails, codes.append)
    asyncio.get_running_loop().remove_reader(speaks._output)  # so that its words are heard when it has died
    for child in (speaks, _child(("true",), lambda _line: None, _fails)):
        await asyncio.wait_for(child.gone(), _SOON_S)
    assert codes == [0]
    assert [str(each) for each in unforeseen] == ["an unexpected word"] * 2


@pytest.mark.kernel
async def test_who_no_longer_waits_for_a_daemon_keeps_nobody_else_from_it() -> None:
    codes: list[int] = []
    child = _child(("sleep", "600"), lambda _line: None, codes.append)
    first = asyncio.ensure_future(child.gone())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    child.signal(signal.SIGKILL)
    await asyncio.wait_for(child.gone(), _SOON_S)
    assert codes == [-signal.SIGKILL]
