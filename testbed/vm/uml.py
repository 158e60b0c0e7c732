"""User-mode Linux as an engine: an ordinary process on the host's files, in real or in virtual time.

No root, no KVM, no disk image. In virtual time (``time-travel=inf-cpu``) the guest's clock moves only while everything
in it sleeps, so that CPU load costs nothing and a run repeats; random numbers, addresses, hash seeds and the wall clock
are fixed then.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process.survivor import scratch_folder
from hpn.testbed.vm import repeatable, uml_kernel
from hpn.testbed.vm.cpu import own_cpu
from hpn.testbed.vm.group import ProcessGroup
from hpn.testbed.vm.guest import SETTINGS, GuestJob, GuestResult, Terminal, Writable
from hpn.testbed.vm.standstill import stall_limit
from hpn.testbed.vm.uml_kernel import UmlKernel
from hpn.testbed.vm.uml_watch import Watch

WALL_CLOCK_NS = 1_767_225_600 * 10**9
"""What the wall clock of a guest in virtual time starts at, with seed 1: 2026-01-01 00:00 UTC."""

_YEAR_S = 365 * 86_400

_INIT = Path(__file__).parent / "init" / "uml.py"
_DESK = "/proc/self/cwd"
"""A path of the host, seen by the kernel's process: the scratch folder."""
_FIRST_FREE_FD = 5


class Uml:
    """The engine."""

    def __init__(self, kernel: Path | None = None, virtual_time: bool = False, *, stall_s: float | None = None) -> None:
        """``stall_s`` None: what ``stall_limit`` says. InputError when the environment says no time."""
        self._wanted = kernel
        self._virtual_time = virtual_time
        self.stall_s = stall_limit() if stall_s is None else stall_s

    @property
    def slowness(self) -> int:
        """In real time each system call costs a detour through the host; in virtual time that costs nothing."""
        return 1 if self._virtual_time else 10

    def check(self) -> None:
        """MachineError when there is no kernel for this, or it lacks something a lab needs."""
        uml_kernel.modules(self._kernel())

    def describe(self) -> str:
        """Its kernel and where that lies."""
        kernel = self._kernel()
        return f"Linux {kernel.release}, {kernel.path}"

    def run(self, job: GuestJob, on_line: Callable[[str], None]) -> GuestResult:
        """Boot, run the command, wait. See ``testbed.vm.guest.Engine``."""
        writable = Writable(job)
        kernel = self._kernel()
        memory = _memory_folder(job.memory_mb)
        with scratch_folder("hpn-uml-") as scratch, own_cpu() as cpu:
            self._furnish(scratch, job, kernel)
            watch = Watch(job, writable, kernel, on_line, self.stall_s, scratch, virtual_time=self._virtual_time)
            with closing(watch):
                with (scratch / "kernel").open("ab") as output, _passed(job.terminal) as terminal:
                    group = ProcessGroup(
                        self._command(job, kernel, terminal),
                        cwd=scratch,
                        environment=self._kernel_environment(memory, scratch, job.seed),
                        output=output.fileno(),
                        pass_fds=terminal,
                        cpu=cpu,
                    )
                try:
                    return watch.watch(group)
                finally:
                    group.kill()

    def _kernel(self) -> UmlKernel:
        return uml_kernel.find(self._wanted, time_travel=self._virtual_time)

    def _furnish(self, scratch: Path, job: GuestJob, kernel: UmlKernel) -> None:
        """Put what the guest starts from into its desk, the folder that its kernel has as a process of the host."""
        if self._virtual_time:
            repeatable.compile_project()
        (scratch / "order.json").write_text(json.dumps(self._order(job, kernel)))
        (scratch / "python").symlink_to(os.path.realpath(sys.executable))
        shutil.copyfile(_INIT, scratch / "init.py")

    def _order(self, job: GuestJob, kernel: UmlKernel) -> dict[str, object]:
        """What the guest's first process is told."""
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TMPDIR": "/dev/shm",
            "PYTHONDONTWRITEBYTECODE": "1",
            **(repeatable.environment() if self._virtual_time else {}),
            **job.environment,
        }
        return {
            "command": list(job.command),
            "cwd": str(job.cwd.absolute()),
            "writable": [str(folder.absolute()) for folder in job.writable],
            "environment": environment,
            "modules": uml_kernel.modules(kernel),
            "settings": dict(SETTINGS),
            "terminal": (job.terminal.rows, job.terminal.columns) if job.terminal else None,
        }

    def _command(self, job: GuestJob, kernel: UmlKernel, terminal: tuple[int, ...]) -> list[str]:
        """The kernel with its parameters; what follows '--' is the first process's own command line.

        No path is in it, nor anything else that varies: the kernel stirs its command line into its random numbers.
        """
        command = [
            *("/bin/sh", "-c", 'exec "$@" 3>> command 4>> control', "sh"),
            str(kernel.path.absolute()),
            f"mem={job.memory_mb}M",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "con=null",
            "con0=null,fd:1",
            "con1=null,fd:3",
            "con2=null,fd:4",
            *(f"con3=fd:{fd}" for fd in terminal),
            "uml_dir=./",
            "umid=guest",
            "quiet",
            "panic=-1",
        ]
        if "ssl[0-9]*=" in kernel.parameters:
            command.append("ssl=null")
        if kernel.seccomp:
            command.append("seccomp=on")
        if self._virtual_time:
            command += ["time-travel=inf-cpu", f"time-travel-start={wall_clock_ns(job.seed)}", "norandmaps"]
        return [*command, f'init="{_DESK}/python"', "--", "-ISEB", f"{_DESK}/init.py"]

    def _kernel_environment(self, memory: Path, scratch: Path, random_seed: int) -> dict[str, str]:
        """Of the kernel as a process of the host, not of what runs inside."""
        seed = {"UML_SEED": str(random_seed)} if self._virtual_time else {}
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(scratch), "TMPDIR": str(memory), **seed}


def wall_clock_ns(seed: int) -> int:
    """What the wall clock of a guest in virtual time starts at: some second of 2026, another with each seed.

    BIRD draws its jitter from the wall clock alone: with one start for all, its sessions would time out at the same
    moments in every repeat of a drill.
    """
    return WALL_CLOCK_NS + (seed - 1) % _YEAR_S * 10**9


@contextmanager
def _passed(terminal: Terminal | None) -> Iterator[tuple[int, ...]]:
    """The terminal's descriptor under a number that the kernel's own terminals do not take; none without a terminal."""
    if terminal is None:
        yield ()
        return
    fd = fcntl.fcntl(terminal.fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_FD)
    try:
        yield (fd,)
    finally:
        os.close(fd)


def _memory_folder(memory_mb: int) -> Path:
    """Where the guest's memory file (never visible) can be: it must allow execution and have room. MachineError."""
    for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())):
        try:
            found = os.statvfs(folder)
        except OSError:
            continue
        room_mb = found.f_bavail * found.f_frsize >> 20
        if not found.f_flag & os.ST_NOEXEC and os.access(folder, os.W_OK) and room_mb >= memory_mb:
            return folder
    raise MachineError(
        f"user-mode Linux needs {memory_mb} MB in a folder that may hold programs: neither /dev/shm nor"
        f" {tempfile.gettempdir()} will do; free some, or name another in TMPDIR"
    )
