"""A process that outlives its parent for one duty: to clear up after it, however it dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from testbed.kernel.sandbox import close_all_but, flush, let_go_of_terminal


@contextmanager
def cleared_up(clear: Callable[[], None], keep: Collection[int] = ()) -> Iterator[None]:
    """Run ``clear``, in another process, when the body has ended or this process has died in it, by SIGKILL for one.

    What the body forks (a sandbox) is over by then: it holds the other end of the pipe. ``clear`` raises nothing;
    of this process's descriptors it has 0 to 2 and ``keep``.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    flush()
    survivor = os.fork()
    if survivor == 0:
        try:
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            close_all_but({reader, *keep})
            let_go_of_terminal()
            os.read(reader, 1)
            clear()
        finally:
            os._exit(0)
    os.close(reader)
    try:
        yield
    finally:
        os.close(writer)
        os.waitpid(survivor, 0)
