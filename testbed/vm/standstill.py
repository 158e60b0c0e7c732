"""How long a guest's clock may stand, and why it stands: its processes here run, wait for a CPU, or do neither.

Changes when a standstill can have another cause. Reads /proc; nothing here knows an engine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import InputError

STALL_S = 120.0
"""A guest whose clock has not been heard of for so much wall time is ended."""

STALL_VARIABLE = "HPN_STALL_LIMIT"
"""Another limit, in seconds, in the environment; a starved guest may need a longer one."""

_A_WHILE_S = 2.0
"""A silence is looked into when it has lasted so long."""
_STATE, _PGRP = 0, 2  # of /proc/PID/stat, behind the name in brackets
_NS = 1e9
_MOST = 0.5  # of the time


@dataclass(frozen=True, slots=True)
class Usage:
    """The CPU time that a process group has had so far, and whether one of it is running or ready to run now.

    Of processes that have ended nothing is known any more. The kernel's own count of waiting (run delay) is of no use
    here: it is brought up to date when a process is let run at last.
    """

    ran_s: float
    wants_more: bool

    def since(self, before: Usage) -> Usage:
        """What came on top."""
        return Usage(max(self.ran_s - before.ran_s, 0.0), self.wants_more)


class Silence:
    """How long a guest has been silent and what its process group had of this machine meanwhile.

    It tells its own clock from time to time (``heard``); after ``limit_s`` of wall time without that it is ``due``.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since = time.monotonic()
        self._clock_s: float | None = None  # the guest's own, when it was last heard
        self._noted: tuple[float, Usage] | None = None

    def heard(self, clock_s: float) -> None:
        """A sign of life: the guest has started, or has told its own time; two of them may come in either order."""
        self._since = time.monotonic()
        self._clock_s = max(self._clock_s or 0.0, clock_s)

    @property
    def due(self) -> float:
        """When it will have been silent for too long, on the clock of ``time.monotonic``."""
        return self._since + self._limit_s

    @property
    def worth_noting(self) -> float:
        """When ``note`` should have been called, on the same clock."""
        return self._since + min(_A_WHILE_S, self._limit_s / 4)

    def note(self, group: int) -> None:
        """Once in each silence, when it has lasted a while: what the guest had used of the machine by then."""
        now = time.monotonic()
        fresh = self._noted is None or self._noted[0] < self._since
        if fresh and now >= self.worth_noting:
            self._noted = now, usage(group)

    def text(self, group: int) -> str:
        """That the guest was silent for too long, where it stands, and why."""
        where = "while booting" if self._clock_s is None else f"its clock stands at {self._clock_s:.1f} s"
        text = f"has been silent for {self._limit_s:g} s ({where}"
        if self._noted is not None:
            since, before = self._noted
            text += "; " + explain(usage(group).since(before), time.monotonic() - since)
        return f"{text}; allow it longer with --stall-limit)"


def stall_limit() -> float:
    """How long a guest's clock may stand, in wall seconds. InputError when the environment says no such thing."""
    given = os.environ.get(STALL_VARIABLE)
    if given is None:
        return STALL_S
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86_400:
        raise InputError(f"{STALL_VARIABLE} is {given!r}, which is no time; write seconds from 1 to 86400")
    return seconds


def usage(group: int) -> Usage:
    """Of the process group of that number, from each process's stat and schedstat; no time where there is none."""
    ran, states = 0.0, set()
    for pid, state in _members(group):
        states.add(state)
        with suppress(OSError):  # it ended, or this kernel keeps no such
            ran += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / _NS
    return Usage(ran, "R" in states)


def explain(used: Usage, silent_s: float) -> str:
    """What a guest did that was silent for ``silent_s`` and used so much meanwhile, and what to do about it."""
    had = f"it had {used.ran_s:.0f} s of CPU time in the last {silent_s:.0f} s"
    if used.ran_s >= _MOST * silent_s:
        return f"{had}: something in it busy-waits, or computes for longer than that"
    if used.wants_more:
        return f"{had} and wants more: this machine starves it; run less beside it"
    return f"{had} and asks for none: it hangs"


def _members(group: int) -> Iterator[tuple[str, str]]:
    """Process ID and state of each."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            if int(fields[_PGRP]) == group:
                yield name, fields[_STATE]
