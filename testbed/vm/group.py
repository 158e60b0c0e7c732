"""A program in a process group of its own that cannot outlive this process.

A guest is many processes. One of its group is a warden: a shell that waits on a pipe that only we hold. When we close
it or die in whatever way, it kills the whole group, itself included. The program starts once the warden is ready. It
leads the group: user-mode Linux calls setsid, which would take it out of a group it did not lead.

The group is a session of its own because the scheduler shares out CPU time among sessions (sched(7), autogroup). Two
processes that alternate on one CPU, as a guest's do at each system call, got all of that CPU on Linux 6.18. That
happened while another process of their session was busy on another CPU. Nothing else bound to that CPU ran at all.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hpn.testbed.kernel.process import cleanup_process
from hpn.testbed.kernel.process.processes import piped

_PROGRAM = """
exec 3<&0 < /dev/null
read -r _ <&3 || exit
{ read -r _ <&3; kill -s KILL 0; } > /dev/null 2>&1 &
exec 3<&-
ulimit -c 0
exec "$@"
"""


class ProcessGroup:
    """A running ``command`` with its output on the descriptor ``output``.

    It inherits ``pass_fds``, none of them 3, under the same numbers. With ``cpu`` all of it runs on that CPU only.
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
            pass_fds=(*pass_fds, *cleanup_process.held()),
            cwd=cwd,
            env=dict(environment),
            start_new_session=True,
        )
        self._pidfd = os.pidfd_open(self._program.pid)
        self._tether = piped(self._program.stdin)
        if cpu is not None:
            os.sched_setaffinity(self._program.pid, {cpu})
        self._tether.write(b"\n")
        self._tether.flush()

    def kill(self) -> int | None:
        """Kill every process of the group; return the program's earlier result (as ``Popen``), None if it was alive."""
        ended = self._program.poll()
        if not self._tether.closed:  # until then the warden lives, and the group's number cannot be reused
            with suppress(ProcessLookupError):  # unless somebody killed the warden, too: nobody is left
                os.killpg(self._program.pid, signal.SIGKILL)
            self._tether.close()
            os.close(self._pidfd)
        self._program.kill()
        self._program.wait()
        return ended

    @property
    def number(self) -> int:
        """Process group ID."""
        return self._program.pid

    def ended(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` for the program to end; return True if it has."""
        ready, _, _ = select.select([self._pidfd], [], [], timeout_s)
        return bool(ready)

    def result(self) -> int:
        """Wait until the program has ended and return its result, as in ``Popen``."""
        return self._program.wait()
