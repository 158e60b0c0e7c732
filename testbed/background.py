"""Error handling for event-loop work that is not awaited: callbacks and background tasks.

asyncio only logs such errors. A future that the callback should have set would then be awaited forever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager


def in_background(work: Coroutine[object, object, None]) -> asyncio.Task[None]:
    """Start a task that needs no awaiting: its errors go to the loop's exception handler at once."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_tell)
    return task


@contextmanager
def ended_by_failures() -> Iterator[None]:
    """Cancel the current task when a callback, or a task in the background, fails during the body; raise its error."""
    task = current_task()
    failures: list[BaseException] = []

    def heard(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if not isinstance(error, BaseException) or "future" in context:  # a future that is not awaited blocks nothing
            loop.default_exception_handler(context)
            return
        if not failures:
            task.cancel()
        failures.append(error)

    task.get_loop().set_exception_handler(heard)
    try:
        yield
    finally:
        task.get_loop().set_exception_handler(None)
        if failures:
            raise failures[0]


def current_task() -> asyncio.Task[object]:
    """Return the running task. RuntimeError outside of any."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("only a task can be cancelled: call this from a coroutine that runs as one")
    return task


def _tell(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        context = {"message": "a task in the background failed", "exception": error, "task": task}
        task.get_loop().call_exception_handler(context)
