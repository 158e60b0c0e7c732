"""One guest from its start to its end: what its first process says, how long it may be silent, what went wrong.

Changes when the guest tells something more, or can come to another bad end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import MachineError
from testbed.vm import standstill
from testbed.vm.console import Console, GrowingFile
from testbed.vm.group import ProcessGroup
from testbed.vm.guest import GuestJob, GuestResult
from testbed.vm.uml_kernel import UmlKernel

_LOOK_S = 0.02
_POWER_OFF_S = 60.0
_LAST_WORDS_S = 5.0
"""How long a kernel in trouble may go on talking."""
_SILENT = "silent"
_A_WHILE_S = 2.0
"""A silence is looked into when it has lasted so long."""


@dataclass(slots=True)
class _Said:
    """What the first process has told so far."""

    started: float | None = None
    beat_at: float = 0.0
    guest_s: float = 0.0
    exit_code: int | None = None
    failed: str | None = None


class Watch:
    """One guest from its start to its end; its streams are the guest's terminals 0, 1 and 2."""

    def __init__(
        self, job: GuestJob, kernel: UmlKernel, on_line: Callable[[str], None], stall_s: float, scratch: Path
    ) -> None:
        self._job = job
        self._stall_s = stall_s
        self._console = Console(on_line)
        self._begun = time.monotonic()
        self._said = _Said(beat_at=self._begun)
        self._release = kernel.release
        self._trouble_at: float | None = None
        self._asleep_since: tuple[float, standstill.Usage] | None = None
        takers = {"control": self._heard, "command": self._console.command, "kernel": self._kernel_said}
        self._streams = tuple(GrowingFile(scratch / name, take) for name, take in takers.items())

    def watch(self, group: ProcessGroup) -> GuestResult:
        """Relay until the guest is gone. MachineError when it went wrong or has to be ended."""
        while not group.ended(min(self._patience(group), _LOOK_S)):
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
        """How long to wait for the next sign of life. MachineError when there was none for too long."""
        now, said = time.monotonic(), self._said
        if self._trouble_at is not None:
            limits = {f"kernel is in trouble ({self._console.trouble})": self._trouble_at + _LAST_WORDS_S}
        elif said.exit_code is not None or said.failed is not None:
            limits = {"did not switch itself off": said.beat_at + _POWER_OFF_S}
        else:
            limits = {
                f"did not end within {self._job.timeout_s:g} s": self._begun + self._job.timeout_s,
                _SILENT: said.beat_at + self._stall_s,
            }
            self._note_usage(group, now)
        due, what = min((at, what) for what, at in limits.items())
        if now >= due:
            raise self._error(self._silence(group, now) if what == _SILENT else what)
        return due - now

    def _note_usage(self, group: ProcessGroup, now: float) -> None:
        """Once in each silence, when it has lasted a while: what the guest had used of the machine by then."""
        begun = self._said.beat_at
        fresh = self._asleep_since is None or self._asleep_since[0] < begun
        if fresh and now - begun >= min(_A_WHILE_S, self._stall_s / 4):
            self._asleep_since = now, standstill.usage(group.number)

    def _silence(self, group: ProcessGroup, now: float) -> str:
        """That the guest was silent for too long, where it stands, and why."""
        said = self._said
        where = f"its clock stands at {said.guest_s:.1f} s" if said.started else "while booting"
        text = f"has been silent for {self._stall_s:g} s ({where}"
        if self._asleep_since is not None:
            since, before = self._asleep_since
            text += "; " + standstill.explain(standstill.usage(group.number).since(before), now - since)
        return f"{text}; allow it longer with --stall-limit)"

    def _kernel_said(self, line: str) -> None:
        self._console.kernel(line)
        if self._console.trouble is not None and self._trouble_at is None:
            self._trouble_at = time.monotonic()

    def _heard(self, line: str) -> None:
        """A message of the first process."""
        word, _, rest = line.partition(" ")
        self._said.beat_at = time.monotonic()
        match word:
            case "start":
                self._said.started = self._said.beat_at
                self._release = rest
            case "beat":
                self._said.guest_s = float(rest)
            case "exit":
                self._said.exit_code = int(rest)
            case "fail":
                self._said.failed = rest

    def _result(self, group: ProcessGroup) -> GuestResult:
        said = self._said
        if self._console.trouble is not None:
            raise self._error(f"kernel is in trouble ({self._console.trouble})")
        if said.failed is not None:
            raise self._error(f"could not start the command: {said.failed}")
        if said.exit_code is None or said.started is None:
            how = group.kill()
            by = f"signal {-how}" if how is not None and how < 0 else f"code {how}"
            raise self._error(f"ended ({by}) before the command did")
        now = time.monotonic()
        return GuestResult(
            exit_code=said.exit_code,
            console_tail=self._console.tail,
            boot_s=said.started - self._begun,
            wall_s=now - self._begun,
            kernel=self._release,
        )

    def _error(self, what: str) -> MachineError:
        return MachineError(f"the UML guest {what}; its last words: {self._console.last_words()}")
