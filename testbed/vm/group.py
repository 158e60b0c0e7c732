"""A program in a process group of its own that cannot outlive this process.

A guest is many processes. One of its group is a warden: a shell that waits on a pipe only we hold and, when we close
it or die in whatever way, kills the whole group, itself included. The program leads the group (user-mode Linux calls
setsid, which would take it out of a group it did not lead) and starts once the warden stands.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from testbed.kernel.processes import piped

_WARDEN = "read -r _; kill -s KILL 0"
_PROGRAM = 'read -r _ || exit; ulimit -c 0; exec "$@" < /dev/null'


class ProcessGroup:
    """``command`` running with its output on the descriptor ``output``; ``pass_fds`` keep their numbers in it.

    With ``cpu`` all of it runs on that CPU only.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        output: int,
        pass_fds: Sequence[int] = (),
        cpu: int | None = None,
    ) -> None:
        self._program = subprocess.Popen(
            ["/bin/sh", "-c", _PROGRAM, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=pass_fds,
            cwd=cwd,
            env=dict(environment),
            process_group=0,
        )
        self._pidfd = os.pidfd_open(self._program.pid)
        with piped(self._program.stdin) as go:
            self._warden = subprocess.Popen(
                ["/bin/sh", "-c", _WARDEN],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=self._program.pid,
            )
            if cpu is not None:
                os.sched_setaffinity(self._program.pid, {cpu})
            go.write(b"\n")

    def kill(self) -> int | None:
        """Kill every process of the group; how the program had ended before (as ``Popen``), None when it had not."""
        ended = self._program.poll()
        if self._warden.returncode is None:  # while it is not waited for, the group's number is nobody else's
            os.killpg(self._program.pid, signal.SIGKILL)
            self._warden.wait()
            piped(self._warden.stdin).close()
            os.close(self._pidfd)
        self._program.kill()
        self._program.wait()
        return ended

    @property
    def number(self) -> int:
        """The process group's."""
        return self._program.pid

    def ended(self, timeout_s: float) -> bool:
        """Wait for the program to end, at most so long; whether it has."""
        ready, _, _ = select.select([self._pidfd], [], [], timeout_s)
        return bool(ready)

    def result(self) -> int:
        """How the program ended, as ``Popen`` has it; waits until it has."""
        return self._program.wait()


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt in the body, so that what has been started is ended; main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
