"""A program in a process group of its own that cannot outlive this process.

A guest is many processes. One of its group is a warden: a shell that waits on a pipe only we hold and, when we close
it or die in whatever way, kills the whole group, itself included. The program leads the group (user-mode Linux calls
setsid, which would take it out of a group it did not lead) and starts once the warden stands.

The group is a session of its own, because of the scheduler, which shares out CPU time among sessions (sched(7),
autogroup). Two processes that take turns on one CPU, as a guest's do at each system call, had all of that CPU on Linux
6.18 while another process of their session was busy on another CPU: nothing else that is bound to that CPU ran at all.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpn.testbed.kernel.process import survivor
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
    """``command`` running with its output on the descriptor ``output``; ``pass_fds``, none of them 3, keep their
    numbers in it.

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
            pass_fds=(*pass_fds, *survivor.held()),
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
        """Kill every process of the group; how the program had ended before (as ``Popen``), None when it had not."""
        ended = self._program.poll()
        if not self._tether.closed:  # until then the warden lives, and the group's number is nobody else's
            os.killpg(self._program.pid, signal.SIGKILL)
            self._tether.close()
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
