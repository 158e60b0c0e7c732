"""Programs in a network namespace and a PID namespace of their own: all their children end with them.

Changes when the confinement of programs changes. The far end is ``testbed.kernel.process.confining``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.ns import CLONE_NEWPID, NetNs, setns, unshare
from hpn.testbed.package import ROOT

_MODULE = "hpn.testbed.kernel.process.confining"


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a program: its exit code, negative for a signal; None: it could not be started, for reason ``why``.

    ``left``: number of processes that it had started and left running, which have been killed.
    """

    code: int | None
    left: int = 0
    why: str = ""

    @property
    def text(self) -> str:
        """Description such as 'exit code 3, and left 2 processes behind'."""
        if self.code is None:
            return self.why
        how = f"killed by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"{how}, and left {self.left} processes behind" if self.left else how


class Confined:
    """A process that becomes the program once it gets its order; its standard streams are non-blocking pipes.

    The owner reads its descriptors ``stdin``, ``stdout``, ``stderr`` and ``pidfd``. MachineError when the kernel does
    not support PID namespaces. Call ``close`` when it has ended.
    """

    def __init__(self, space: NetNs) -> None:
        control, self._control = os.pipe2(os.O_CLOEXEC)
        self._status, status = os.pipe2(os.O_CLOEXEC)
        fds = (space.fd, control, status)
        try:
            with _children_confined():
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-B", "-m", _MODULE, *map(str, fds)],
                    pass_fds=fds,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                )
        except OSError as error:
            raise MachineError(f"cannot start a client: {error.strerror}; are there too many processes?") from error
        finally:
            os.close(control)
            os.close(status)
        self.pid = self._process.pid
        self.pidfd = os.pidfd_open(self.pid)
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self.stdin, self.stdout, self.stderr = (-1 if stream is None else stream.fileno() for stream in streams)
        for fd in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(fd, False)

    def order(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, at_ns: int = 0, *, batch: bool = False
    ) -> None:
        """Become this program at a time of CLOCK_MONOTONIC; if that has passed, at once.

        ``batch``: use the scheduling class SCHED_BATCH, by which a kernel in virtual time recognises polling programs.
        """
        order = {"argv": list(argv), "env": dict(env), "cwd": str(cwd), "at_ns": at_ns, "batch": batch}
        with suppress(BrokenPipeError):  # it has ended, which is detected elsewhere
            left = memoryview(json.dumps(order).encode())
            while left:
                left = left[os.write(self._control, left) :]
        os.close(self._control)
        self._control = -1

    def terminate(self) -> None:
        """Send SIGTERM to the program and all processes that it started."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it, and all processes that it started, at once."""
        self._signal(signal.SIGKILL)

    def ended(self) -> Ended:
        """Return its result once it has ended, which ``pidfd`` signals by becoming readable."""
        self._process.wait()
        words = b""
        while data := os.read(self._status, 1 << 12):
            words += data
        if not words:
            return Ended(-signal.SIGKILL)
        told = json.loads(words.splitlines()[0])
        if "cannot" in told:
            return Ended(None, why=f"cannot be started: {told['cannot']}")
        return Ended(int(told["code"]), int(told["left"]))

    def close(self) -> None:
        """Close its descriptors."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):  # unwritten data cannot be flushed
                    stream.close()
        for fd in (self._control, self._status, self.pidfd):
            if fd >= 0:
                os.close(fd)
        self._control = self._status = self.pidfd = -1

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)


@contextmanager
def _children_confined() -> Iterator[None]:
    """Make the next child the first process of a new PID namespace. Affects the calling thread only."""
    home = os.open("/proc/thread-self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        unshare(CLONE_NEWPID)
        try:
            yield
        finally:
            setns(home, CLONE_NEWPID)
    finally:
        os.close(home)
