"""A daemon's process: whatever goes wrong at its end, who waits for that end is told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable

import pytest

from testbed.kernel.ns import NetNs
from testbed.routing.child import Child

_SOON_S = 20.0
_LAST_WORDS = "import time; print('up', flush=True); time.sleep(600)"


def _child(heard: Callable[[str], None], died: Callable[[int], None]) -> Child:
    """In the namespace that this process is in."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return Child([sys.executable, "-c", _LAST_WORDS], NetNs("here", own), heard, died)
    finally:
        os.close(own)


def _fails(*_said: object) -> None:
    raise ValueError("an unexpected word")


@pytest.mark.kernel
async def test_a_daemon_whose_words_or_death_nobody_understands_is_seen_to_end() -> None:
    unforeseen: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unforeseen.append(context["exception"]))
    codes: list[int] = []
    for child in (_child(_fails, codes.append), _child(lambda _line: None, _fails)):
        child.signal(signal.SIGKILL)
        await asyncio.wait_for(child.gone(), _SOON_S)
    assert codes == [-signal.SIGKILL]
    assert "an unexpected word" in [str(each) for each in unforeseen]


@pytest.mark.kernel
async def test_who_no_longer_waits_for_a_daemon_keeps_nobody_else_from_it() -> None:
    codes: list[int] = []
    child = _child(lambda _line: None, codes.append)
    first = asyncio.ensure_future(child.gone())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    child.signal(signal.SIGKILL)
    await asyncio.wait_for(child.gone(), _SOON_S)
    assert codes == [-signal.SIGKILL]
