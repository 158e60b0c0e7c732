"""Processes of a sandbox, as seen by its first process; signals of a command that must clean up."""

from __future__ import annotations

import os
import signal
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO


def own_pids() -> list[int]:
    """Return every process of the sandbox: its /proc shows no others."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_stopped(pid: int) -> bool:
    """Return True if the process is stopped (SIGSTOP, or a debugger); False when it is gone."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state in "Tt"


def reap_strangers(own: Container[int]) -> None:
    """Reap orphans inherited as the first process; ``own`` children are left to their waiters."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid in own:
            return
        os.waitpid(found.si_pid, 0)


def piped(stream: IO[bytes] | None) -> IO[bytes]:
    """Return a child's standard stream that is a pipe. ValueError if the child was started without one."""
    if stream is None:
        raise ValueError("the child was started without a pipe for this stream")
    return stream


@contextmanager
def interrupted_by_any_signal() -> Iterator[None]:
    """Make SIGTERM and SIGHUP act as Ctrl-C does, so that the command cleans up.

    Signals that nohup ignores stay ignored, and so do those ignored later, when there is nothing to clean up.
    """
    previous = {number: signal.signal(number, _interrupt) for number in not_ignored(signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, handler)


def not_ignored(*signals: signal.Signals) -> list[signal.Signals]:
    """Return those of the signals that are not ignored; nohup ignores SIGHUP."""
    return [number for number in signals if signal.getsignal(number) != signal.SIG_IGN]


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
