"""The QEMU engine: a command under the distribution's stock kernel, on the host's files, with KVM or emulated.

Changes when a QEMU process must be watched differently. How it is called is ``qemu_command``, what happens inside is
``qemu_initrd``.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO

from testbed.errors import MachineError
from testbed.kernel.sandbox import die_with_parent
from testbed.vm import kvm, qemu_initrd
from testbed.vm.console import Console, Lines
from testbed.vm.group import sigterm_as_interrupt
from testbed.vm.guest import GuestJob, GuestResult
from testbed.vm.qemu_command import Kernel, Shape, kernel_at, missing_tools, newest_kernel, prepare

_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",  # the host's files are read-only there
}
_KVM_PROBE_S = 10.0
_LAST_WORDS_S = 5.0
"""How long a kernel in trouble may go on talking before it is killed."""


class Qemu:
    """Boots guests with QEMU; ``kernel`` is a /boot/vmlinuz-RELEASE, by default the newest one with modules."""

    name = "qemu"

    def __init__(self, kernel: Path | None = None) -> None:
        self._wanted = kernel

    def kernel(self) -> Kernel | None:
        """The kernel that guests run; None when there is none. MachineError when the one asked for cannot be used."""
        return newest_kernel() if self._wanted is None else kernel_at(self._wanted)

    def check(self) -> None:
        """MachineError with everything that is missing and what provides it."""
        missing = list(missing_tools(self.kernel()))
        if missing:
            raise MachineError(f"engine qemu cannot run here: {'; '.join(missing)}")

    @property
    def slowness(self) -> int:
        """Emulated, Python is ten to sixteen times slower, and the kernel is slower too."""
        return 1 if self.accelerator() == "kvm" else 40

    def accelerator(self) -> str:
        """'kvm', or 'tcg (why not kvm)': found out by booting, once per process, because /dev/kvm alone says little."""
        kernel = self.kernel()
        assert kernel is not None
        why_not = _kvm_problem(kernel)
        return "kvm" if why_not is None else f"tcg ({why_not})"

    def run(self, job: GuestJob, on_line: Callable[[str], None]) -> GuestResult:
        """Boot, run ``job``, wait. Its environment also says HPN_ACCELERATOR: 'kvm' or 'tcg (why not kvm)'.

        MachineError, with the last lines of the console, when the guest hangs, panics or is killed.
        """
        self.check()
        kernel = self.kernel()
        assert kernel is not None
        accelerator = self.accelerator()
        told = replace(job, environment={**job.environment, "HPN_ACCELERATOR": accelerator})
        return _boot(kernel, told, on_line, kvm=accelerator == "kvm")


def _boot(kernel: Kernel, job: GuestJob, on_line: Callable[[str], None], *, kvm: bool) -> GuestResult:
    for path in job.writable:
        if not path.is_dir():
            raise MachineError(f"{path}, which the guest should write, is no folder here; create it")
    with tempfile.TemporaryDirectory(prefix="hpn-guest-") as made:
        folder = Path(made)
        script, exit_file = folder / "command.sh", folder / "exit"
        environment = {**_ENVIRONMENT, **job.environment}
        script.write_text(qemu_initrd.script(job.command, job.cwd, environment, exit_file))
        shape = Shape(job.memory_mb, job.cpus, (folder, *job.writable), kvm)
        command = prepare(kernel, shape, folder, script)
        with _Guest(command, on_line) as guest:
            guest.watch(job.timeout_s)
            return guest.result(exit_file)


class _Guest:
    """One QEMU process, from start to end."""

    def __init__(self, command: list[str], on_line: Callable[[str], None]) -> None:
        self._command = command
        self._console = Console(on_line)
        self._output, self._kernel_log = Lines(), Lines()
        self._process: subprocess.Popen[bytes] | None = None
        self._started = time.monotonic()
        self._boot_s: float | None = None
        self._release = ""

    def __enter__(self) -> _Guest:
        with sigterm_as_interrupt():
            # A session of its own, so that Ctrl-C reaches us alone; the kernel kills it when we die.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        return self

    def __exit__(self, *_exception: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def watch(self, timeout_s: float) -> None:
        """Pass lines on until QEMU has ended. MachineError when it does not in time."""
        assert self._process is not None
        deadline = self._started + timeout_s
        takers: dict[IO[bytes] | None, Callable[[bytes], None]] = {
            self._process.stdout: self._take_output,
            self._process.stderr: self._take_kernel_log,
        }
        with selectors.DefaultSelector() as selector, sigterm_as_interrupt():
            for stream, take in takers.items():
                assert stream is not None
                selector.register(stream, selectors.EVENT_READ, take)
            while selector.get_map():
                ready = selector.select(max(deadline - time.monotonic(), 0))
                if not ready:
                    raise MachineError(self._what_happened(f"did not end within {timeout_s:g} s"))
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    key.data(data)
                    if not data:
                        selector.unregister(key.fileobj)
                if self._console.trouble is not None:
                    deadline = min(deadline, time.monotonic() + _LAST_WORDS_S)

    def result(self, exit_file: Path) -> GuestResult:
        """What the command answered. MachineError when the guest ended before it did, or its kernel had trouble."""
        assert self._process is not None
        code = self._process.wait()
        if self._console.trouble is not None:
            raise MachineError(self._what_happened("got into trouble"))
        try:
            exit_code = int(exit_file.read_text())
        except (OSError, ValueError):
            how = f"was killed by signal {-code}" if code < 0 else f"ended before the command did (QEMU's code {code})"
            raise MachineError(self._what_happened(how)) from None
        wall_s = time.monotonic() - self._started
        return GuestResult(exit_code, self._console.tail, self._boot_s or 0.0, wall_s, self._release)

    def _take_output(self, data: bytes) -> None:
        for line in self._output.feed(data) if data else self._output.rest():
            if self._boot_s is None and line.startswith(qemu_initrd.READY):
                self._boot_s = time.monotonic() - self._started
                self._release = line.removeprefix(qemu_initrd.READY).strip()
            else:
                self._console.command(line)

    def _take_kernel_log(self, data: bytes) -> None:
        for line in self._kernel_log.feed(data) if data else self._kernel_log.rest():
            self._console.kernel(line)

    def _what_happened(self, how: str) -> str:
        trouble = f" ({self._console.trouble})" if self._console.trouble else ""
        when = "while booting" if self._boot_s is None else "while the command ran"
        return f"the qemu guest {how} {when}{trouble}; its console ended: {self._console.last_words()}"


@cache
def _kvm_problem(kernel: Kernel) -> str | None:
    """Why guests cannot use KVM here; None when they can."""
    job = GuestJob(("true",), Path("/"), (), {}, 512, 1, _KVM_PROBE_S)
    return kvm.problem(kernel.release, lambda: _boot(kernel, job, lambda _line: None, kvm=True))
