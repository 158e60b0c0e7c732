"""The QEMU engine: a command under the distribution's stock kernel, on the host's files, with KVM or emulated.

Changes when the monitoring of a QEMU process changes. Its command line is in ``qemu_command``, the guest's start-up in
``qemu_initrd``.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process.cleanup_process import held, scratch_folder
from hpn.testbed.kernel.process.processes import piped
from hpn.testbed.kernel.process.sandbox import die_with_parent
from hpn.testbed.vm import kvm, qemu_initrd
from hpn.testbed.vm.console import Console, Lines, how_it_ended
from hpn.testbed.vm.guest import GuestJob, GuestResult, Writable
from hpn.testbed.vm.qemu_command import Kernel, Shape, kernel_at, missing_tools, newest_kernel, prepare
from hpn.testbed.vm.standstill import STALL_S, Silence, explain, stall_limit, usage

_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",  # the host's files are read-only there
}
_KVM = Path("/dev/kvm")
_KVM_PROBE_S = 10.0
_LAST_WORDS_S = 5.0
"""Time for a kernel in trouble to finish its messages before it is killed."""
_BOOT_S = 180.0
"""Wall time to the command's start, unless the stall limit is longer; emulated on an idle machine it takes 5 s."""
_POWER_OFF_S = 60.0
_BEAT = re.compile(rf"{qemu_initrd.BEAT} (\d+\.\d+)")
_LONGEST_BEAT_S = 10.0
_BEATS = 4  # within the stall limit


class Qemu:
    """Launcher of guests by QEMU; ``kernel`` is a /boot/vmlinuz-RELEASE, by default the newest one with modules."""

    def __init__(self, kernel: Path | None = None, *, stall_s: float | None = None) -> None:
        """Create the engine; ``stall_s`` None: use ``stall_limit``. InputError if the environment's is invalid."""
        self._wanted = kernel
        self.stall_s = stall_limit() if stall_s is None else stall_s

    def kernel(self) -> Kernel | None:
        """Return the guests' kernel; None when there is none. MachineError when the requested one cannot be used."""
        return newest_kernel() if self._wanted is None else kernel_at(self._wanted)

    def _bootable(self) -> Kernel:
        """Return the kernel, after ``check`` has found one. MachineError."""
        kernel = self.kernel()
        if kernel is None:
            raise MachineError("engine qemu cannot run here: there is no kernel that it can boot")
        return kernel

    def check(self) -> None:
        """Raise MachineError with everything that is missing and its remedy."""
        missing = list(missing_tools(self.kernel()))
        if missing:
            raise MachineError(f"engine qemu cannot run here: {'; '.join(missing)}")

    def describe(self) -> str:
        """Describe kernel and accelerator as far as known: only booting, up to 20 s, shows if KVM works."""
        kernel = self._bootable()
        usable = os.access(_KVM, os.R_OK | os.W_OK)
        unknown = "kvm or tcg: seen when a guest boots (hpn doctor --engines)"
        return f"Linux {kernel.release}, {unknown if usable else self.accelerator()}"

    @property
    def slowness(self) -> int:
        """Slowdown: emulated, Python is ten to sixteen times slower, and the kernel is slower too."""
        return 1 if self.accelerator() == "kvm" else 40

    def accelerator(self) -> str:
        """Return 'kvm', or 'tcg (why not kvm)': detected by booting, see ``testbed.vm.kvm``."""
        why_not = _kvm_problem(self._bootable())
        return "kvm" if why_not is None else f"tcg ({why_not})"

    def run(self, job: GuestJob, on_line: Callable[[str], None]) -> GuestResult:
        """Boot, run ``job``, wait. HPN_ACCELERATOR in its environment is 'kvm' or 'tcg (why not kvm)'.

        MachineError, with the last lines of the console, when the guest hangs, panics or is killed.
        """
        self.check()
        kernel = self._bootable()
        accelerator = self.accelerator()
        told = replace(job, environment={**job.environment, "HPN_ACCELERATOR": accelerator})
        try:
            return _boot(kernel, told, on_line, kvm=accelerator == "kvm", stall_s=self.stall_s)
        except _BootTrouble as first:
            on_line(f"booting once more: {first}")
            return _boot(kernel, told, on_line, kvm=accelerator == "kvm", stall_s=self.stall_s)


def _boot(
    kernel: Kernel, job: GuestJob, on_line: Callable[[str], None], *, kvm: bool, stall_s: float = STALL_S
) -> GuestResult:
    writable = Writable(job)
    with scratch_folder("hpn-guest-") as folder:
        script, exit_file = folder / "command.sh", folder / "exit"
        environment = {**_ENVIRONMENT, **job.environment}
        beat_s = min(stall_s / _BEATS, _LONGEST_BEAT_S)
        script.write_text(qemu_initrd.script(job.command, job.cwd, environment, exit_file, job.terminal, beat_s))
        terminal = job.terminal.fd if job.terminal else None
        shape = Shape(job.memory_mb, job.cpus, (folder, *job.writable), kvm, terminal)
        command = prepare(kernel, shape, folder, script)
        with _Guest(command, on_line, terminal, stall_s) as guest:
            guest.watch(job.timeout_s, writable)
            return guest.result(exit_file)


class _BootTrouble(MachineError):
    """The kernel crashed before it ran anything, or QEMU by an assertion of its own.

    With several emulated CPUs some kernels do so occasionally (int3), and QEMU 7.2 (msix_table_mmio_write).
    """


class _Guest:
    """One QEMU process, from start to end."""

    def __init__(
        self, command: list[str], on_line: Callable[[str], None], terminal: int | None, stall_s: float = STALL_S
    ) -> None:
        self._stall_s = stall_s
        self._silence = Silence(stall_s)
        self._console = Console(on_line)
        self._output, self._kernel_log = Lines(), Lines()
        self._started = time.monotonic()
        self._boot_s: float | None = None
        self._over_at: float | None = None
        self._trouble_at: float | None = None
        self._release = ""
        # A session of its own, so that Ctrl-C reaches only us; the kernel kills it when we die.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(*held(), *(() if terminal is None else (terminal,))),
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        self._streams = {
            piped(self._process.stdout): self._take_output,
            piped(self._process.stderr): self._take_kernel_log,
        }

    def __enter__(self) -> _Guest:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in self._streams:
            stream.close()

    def watch(self, timeout_s: float, writable: Writable) -> None:
        """Pass lines on until QEMU has ended. MachineError when it does not in time, or a writable folder is gone."""
        with selectors.DefaultSelector() as selector:
            for stream, take in self._streams.items():
                selector.register(stream, selectors.EVENT_READ, take)
            while selector.get_map():
                self._silence.note(self._number)
                writable.check()
                due, what = min(self._limits(timeout_s), key=lambda limit: limit[0])
                if time.monotonic() >= due:  # even if it still prints
                    raise self._error(what())
                for key, _ in selector.select(self._patience(due)):
                    data = os.read(key.fd, 1 << 16)
                    key.data(data)
                    if not data:
                        selector.unregister(key.fileobj)

    def _patience(self, due: float) -> float:
        """Return the time to wait for output: until a limit is due or a silence is to be noted."""
        now, look = time.monotonic(), self._silence.worth_noting
        return max((min(due, look) if look > now else due) - now, 0)

    def _limits(self, timeout_s: float) -> Iterator[tuple[float, Callable[[], str]]]:
        """Yield deadlines, each with a function for its error text."""
        yield self._started + timeout_s, lambda: f"did not end within {timeout_s:g} s"
        if self._trouble_at is not None:
            yield self._trouble_at + _LAST_WORDS_S, lambda: self._console.what_happened
        elif self._boot_s is None:
            boot_s = max(_BOOT_S, self._stall_s)
            yield self._started + boot_s, lambda: f"did not start the command within {boot_s:g} s ({self._use()})"
        elif self._over_at is None:
            yield self._silence.due, lambda: self._silence.text(self._number)
        else:
            yield self._over_at + _POWER_OFF_S, lambda: f"did not switch itself off within {_POWER_OFF_S:g} s"

    def result(self, exit_file: Path) -> GuestResult:
        """Return the command's result. MachineError when the guest ended before it did, or its kernel had trouble."""
        code = self._process.wait()
        if self._console.trouble is not None:
            raise self._error(self._console.what_happened)
        try:
            exit_code = int(exit_file.read_text())
        except (OSError, ValueError):
            raise self._error(how_it_ended(code), crashed=code == -signal.SIGABRT) from None
        wall_s = time.monotonic() - self._started
        said = self._console
        return GuestResult(exit_code, said.tail, self._boot_s or 0.0, wall_s, self._release, said.last_line)

    @property
    def _number(self) -> int:
        """ID of its process group, which is its own."""
        return self._process.pid

    def _use(self) -> str:
        """Describe its CPU use on this machine since its start."""
        return explain(usage(self._number), time.monotonic() - self._started)

    def _take_output(self, data: bytes) -> None:
        for line in self._output.feed(data) if data else self._output.rest():
            if self._boot_s is None and line.startswith(qemu_initrd.READY):
                self._boot_s = time.monotonic() - self._started
                self._silence.heard(0.0)
                self._release = line.removeprefix(qemu_initrd.READY).strip()
            else:
                self._console.command(line)

    def _take_kernel_log(self, data: bytes) -> None:
        for line in self._kernel_log.feed(data) if data else self._kernel_log.rest():
            if qemu_initrd.OVER in line:
                self._over_at = time.monotonic()
                continue
            if (beat := _BEAT.search(line)) is not None:
                self._silence.heard(float(beat[1]))
                continue
            self._console.kernel(line)
            if self._console.trouble is not None and self._trouble_at is None:
                self._trouble_at = time.monotonic()

    def _error(self, how: str, *, crashed: bool = False) -> MachineError:
        when = "while booting" if self._boot_s is None else "while the command ran"
        when = when if self._over_at is None else "after the command had ended"
        crashed = crashed or self._console.trouble is not None
        kind = _BootTrouble if crashed and self._boot_s is None else MachineError
        return kind(f"the qemu guest {how} {when}; its console ended: {self._console.last_words()}")


@cache
def _kvm_problem(kernel: Kernel) -> str | None:
    """Return why guests cannot use KVM here; None when they can."""
    job = GuestJob(("true",), Path("/"), (), {}, 512, 1, _KVM_PROBE_S)
    return kvm.problem(kernel.release, lambda: _boot(kernel, job, lambda _line: None, kvm=True))
