"""A process that outlives its parent for one duty: to clean up after it, however it dies."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from hpn.testbed.kernel.process.sandbox import close_all_but, flush, let_go_of_terminal

_FIRST_FD = 10  # shells may redirect the numbers below
_held: list[int] = []


@contextmanager
def cleared_up(clear: Callable[[], None], keep: Collection[int] = ()) -> Iterator[None]:
    """Run ``clear`` in another process when the body has ended, or this process has died in it, even by SIGKILL.

    Processes that the body forks (a sandbox), or starts with ``held``, have ended by then: they hold the other end of
    the pipe. When nested, the inner one cleans up first. ``clear`` must not raise; of this process's descriptors it has
    0 to 2 and ``keep``.
    """
    reader, writer = _pipe()
    flush()
    survivor = os.fork()
    if survivor == 0:
        try:
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            close_all_but({reader, *keep, *_held})
            let_go_of_terminal()
            os.read(reader, 1)
            clear()
        finally:
            os._exit(0)
    os.close(reader)
    _held.append(writer)
    try:
        yield
    finally:
        _held.remove(writer)
        os.close(writer)
        os.waitpid(survivor, 0)


@contextmanager
def scratch_folder(prefix: str, below: Path | None = None) -> Iterator[Path]:
    """Create a private folder, absolute; it is removed with its content when the body or this process has ended.

    It is created in ``below``, or where temporary files are. OSError when that fails.
    """
    made = (below or Path(tempfile.gettempdir())).absolute() / f"{prefix}{os.urandom(6).hex()}"
    with cleared_up(lambda: shutil.rmtree(made, ignore_errors=True)):
        made.mkdir(0o700)
        yield made


def held() -> tuple[int, ...]:
    """Return the descriptor to pass to a program started in the body: clean-up waits until the program has ended."""
    return tuple(_held[-1:])


def hold(descriptors: Collection[int]) -> None:
    """Hold the descriptors of the process that started this one, until this and its clean-up have ended."""
    for fd in descriptors:
        os.set_inheritable(fd, False)
    _held.extend(descriptors)


def _pipe() -> tuple[int, int]:
    reader, low = os.pipe2(os.O_CLOEXEC)
    writer = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _FIRST_FD)
    os.close(low)
    return reader, writer
