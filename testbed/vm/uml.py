"""User-mode Linux as an engine: an ordinary process on the host's files, in real or in virtual time.

No root, no KVM, no disk image. In virtual time (``time-travel=inf-cpu``) the guest's clock moves only while everything
in it sleeps, so that CPU load costs nothing and a run repeats. Random numbers, addresses, hash seeds and the wall clock
are fixed then.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process.cleanup_process import scratch_folder
from hpn.testbed.vm import repeatable, uml_kernel
from hpn.testbed.vm.group import ProcessGroup
from hpn.testbed.vm.guest import SETTINGS, GuestJob, GuestResult, Terminal, Writable
from hpn.testbed.vm.standstill import stall_limit
from hpn.testbed.vm.uml_kernel import UmlKernel
from hpn.testbed.vm.uml_watch import Watch


@contextmanager
def own_cpu() -> Iterator[int]:
    """Claim a CPU this process may use and on which no guest runs, for the body; if all are taken, share one of them.

    The claim is a name in the kernel's abstract socket namespace, so it ends with the process for any reason.
    """
    allowed = sorted(os.sched_getaffinity(0), reverse=True)  # the first ones serve most interrupts
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
        yield next((cpu for cpu in allowed if _taken(claim, cpu)), allowed[os.getpid() % len(allowed)])


def _taken(claim: socket.socket, cpu: int) -> bool:
    """Return True if ``cpu`` is ours now; False when it is another guest's."""
    try:
        claim.bind(f"\0hpn/guest on CPU {cpu}")
    except OSError:
        return False
    return True


WALL_CLOCK_NS = 1_767_225_600 * 10**9
"""Start of the wall clock of a guest in virtual time, with seed 1: 2026-01-01 00:00 UTC."""

_YEAR_S = 365 * 86_400

_INIT = Path(__file__).parent / "init" / "uml.py"
_DESK = "/proc/self/cwd"
"""Path of the host, seen by the kernel's process: the scratch folder."""
_FIRST_FREE_FD = 5


class Uml:
    """Engine of user-mode Linux."""

    def __init__(self, kernel: Path | None = None, virtual_time: bool = False, *, stall_s: float | None = None) -> None:
        """Create the engine; ``stall_s`` None: use ``stall_limit``. InputError if the environment's is invalid."""
        self._wanted = kernel
        self._virtual_time = virtual_time
        self.stall_s = stall_limit() if stall_s is None else stall_s

    @property
    def slowness(self) -> int:
        """Slowdown: in real time each system call takes a detour through the host; in virtual time it is free."""
        return 1 if self._virtual_time else 10

    def check(self) -> None:
        """Raise MachineError when there is no kernel for this, or it lacks something a lab needs."""
        uml_kernel.modules(self._kernel())

    def describe(self) -> str:
        """Describe its kernel by release and path."""
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
        """Put the guest's start-up files into its desk, the working folder of its kernel as a process of the host."""
        if self._virtual_time:
            repeatable.compile_project()
        (scratch / "order.json").write_text(json.dumps(self._order(job, kernel)))
        (scratch / "python").symlink_to(os.path.realpath(sys.executable))
        shutil.copyfile(_INIT, scratch / "init.py")

    def _order(self, job: GuestJob, kernel: UmlKernel) -> dict[str, object]:
        """Return the order for the guest's first process."""
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
        """Return the kernel with its parameters; after '--' comes the first process's own command line.

        It contains no path, nor anything else that varies: the kernel mixes its command line into its random numbers.
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
        """Return the environment of the kernel as a process of the host, not of the guest's processes."""
        seed = {"UML_SEED": str(random_seed)} if self._virtual_time else {}
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(scratch), "TMPDIR": str(memory), **seed}


def wall_clock_ns(seed: int) -> int:
    """Return the wall clock's start in virtual time: a second of 2026 that depends on the seed.

    BIRD draws its jitter from the wall clock alone. With one start for all, its sessions would time out at the same
    moments in every repeat of a drill.
    """
    return WALL_CLOCK_NS + (seed - 1) % _YEAR_S * 10**9


@contextmanager
def _passed(terminal: Terminal | None) -> Iterator[tuple[int, ...]]:
    """Duplicate the terminal's descriptor to a number unused by the kernel's own terminals; empty without one."""
    if terminal is None:
        yield ()
        return
    fd = fcntl.fcntl(terminal.fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_FD)
    try:
        yield (fd,)
    finally:
        os.close(fd)


def _memory_folder(memory_mb: int) -> Path:
    """Return a folder for the guest's memory file (never visible): executable and with enough room. MachineError."""
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
