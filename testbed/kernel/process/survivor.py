"""A process that outlives its parent for one duty: to clear up after it, however it dies."""

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

_FIRST_FD = 10  # shells redirect the numbers below
_held: list[int] = []


@contextmanager
def cleared_up(clear: Callable[[], None], keep: Collection[int] = ()) -> Iterator[None]:
    """Run ``clear``, in another process, when the body has ended or this process has died in it, by SIGKILL for one.

    What the body forks (a sandbox), or starts with ``held``, is over by then: it holds the other end of the pipe. Of
    nested ones the inner clears up first. ``clear`` raises nothing; of this process's descriptors it has 0 to 2 and
    ``keep``.
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
    """A private folder, absolute, gone with all that is in it when the body has ended or this process has died in it.

    It lies in ``below``, or where temporary files do. OSError when it cannot be made.
    """
    made = (below or Path(tempfile.gettempdir())).absolute() / f"{prefix}{os.urandom(6).hex()}"
    with cleared_up(lambda: shutil.rmtree(made, ignore_errors=True)):
        made.mkdir(0o700)
        yield made


def held() -> tuple[int, ...]:
    """The descriptor that a program started in the body is to have: nothing is cleared up before it has ended."""
    return tuple(_held[-1:])


def hold(descriptors: Collection[int]) -> None:
    """Keep those of whoever started this process, until it and what clears up after it have ended."""
    for fd in descriptors:
        os.set_inheritable(fd, False)
    _held.extend(descriptors)


def _pipe() -> tuple[int, int]:
    reader, low = os.pipe2(os.O_CLOEXEC)
    writer = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _FIRST_FD)
    os.close(low)
    return reader, writer
