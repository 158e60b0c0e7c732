"""Monitoring of one guest from start to end: messages of its first process, silence limits, and failures.

Changes when the guest sends another message, or can fail in another way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.console import Console, GrowingFile, how_it_ended
from hpn.testbed.vm.group import ProcessGroup
from hpn.testbed.vm.guest import GuestJob, GuestResult, Writable
from hpn.testbed.vm.standstill import Silence
from hpn.testbed.vm.uml_kernel import UmlKernel

_LOOK_S = 0.02
_POWER_OFF_S = 60.0
_LAST_WORDS_S = 5.0
"""Time for a kernel in trouble to finish its messages."""
_SILENT = "silent"


@dataclass(slots=True)
class _Said:
    """Messages of the first process so far."""

    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    failed: str | None = None


class Watch:
    """Monitor of one guest from start to end; its streams are the guest's terminals 0, 1 and 2."""

    def __init__(
        self,
        job: GuestJob,
        writable: Writable,
        kernel: UmlKernel,
        on_line: Callable[[str], None],
        stall_s: float,
        scratch: Path,
        *,
        virtual_time: bool = False,
    ) -> None:
        self._job = job
        self._virtual_time = virtual_time
        self._writable = writable
        self._silence = Silence(stall_s)
        self._console = Console(on_line)
        self._begun = time.monotonic()
        self._said = _Said()
        self._release = kernel.release
        self._trouble_at: float | None = None
        takers = {"control": self._heard, "command": self._console.command, "kernel": self._kernel_said}
        self._streams = tuple(GrowingFile(scratch / name, take) for name, take in takers.items())

    def watch(self, group: ProcessGroup) -> GuestResult:
        """Relay until the guest is gone. MachineError when it failed or has to be ended."""
        while not group.ended(min(self._patience(group), _LOOK_S)):
            self._writable.check()
            self._job.look()
            for stream in self._streams:
                stream.relay()
        for stream in self._streams:
            stream.finish()
        return self._result(group)

    def close(self) -> None:
        """Close the streams."""
        for stream in self._streams:
            stream.close()

    def _patience(self, group: ProcessGroup) -> float:
        """Return the time to wait for the next sign of life. MachineError when there was none for too long."""
        now, said = time.monotonic(), self._said
        if self._trouble_at is not None:
            limits = {f"{self._console.what_happened} {self._when}": self._trouble_at + _LAST_WORDS_S}
        elif said.ended is not None:
            limits = {f"did not switch itself off within {_POWER_OFF_S:g} s": said.ended + _POWER_OFF_S}
        else:
            self._silence.note(group.number)  # first: if the guest is starved, it is due later
            limits = {**self._time_limit(), _SILENT: self._silence.due}
        due, what = min((at, what) for what, at in limits.items())
        if now >= due:
            raise self._error(self._silence.text(group.number) if what == _SILENT else what)
        return due - now

    def _time_limit(self) -> dict[str, float]:
        """Return the command's time limit. In virtual time the guest's clock counts: a slow machine ends no guest."""
        limit_s = self._job.timeout_s
        if not self._virtual_time:
            return {f"did not end within {limit_s:g} s": self._begun + limit_s}
        over = self._silence.clock_s > limit_s
        return {f"did not end within {limit_s:g} s of its own time": self._begun} if over else {}

    def _kernel_said(self, line: str) -> None:
        self._console.kernel(line)
        if self._console.trouble is not None and self._trouble_at is None:
            self._trouble_at = time.monotonic()

    def _heard(self, line: str) -> None:
        """Handle a message of the first process."""
        word, _, rest = line.partition(" ")
        now = time.monotonic()
        match word:
            case "start":
                self._said.started = now
                self._release = rest
                self._silence.heard(0.0)
            case "beat":
                self._silence.heard(float(rest))
            case "exit":
                self._said.ended, self._said.exit_code = now, int(rest)
            case "fail":
                self._said.ended, self._said.failed = now, rest

    def _result(self, group: ProcessGroup) -> GuestResult:
        said = self._said
        if self._console.trouble is not None:
            raise self._error(f"{self._console.what_happened} {self._when}")
        if said.failed is not None:
            what = "could not start the command" if said.started is None else "could not bring the command to its end"
            raise self._error(f"{what}: {said.failed}")
        if said.exit_code is None or said.started is None:
            raise self._error(f"{how_it_ended(group.result())} {self._when}")
        now = time.monotonic()
        return GuestResult(
            exit_code=said.exit_code,
            console_tail=self._console.tail,
            boot_s=said.started - self._begun,
            wall_s=now - self._begun,
            kernel=self._release,
            last_line=self._console.last_line,
        )

    @property
    def _when(self) -> str:
        if self._said.started is None:
            return "while booting"
        return "while the command ran" if self._said.ended is None else "after the command had ended"

    def _error(self, what: str) -> MachineError:
        return MachineError(f"the UML guest {what}; its last words: {self._console.last_words()}")
