"""Why a guest's clock stands: whether its processes on this machine run, wait for a CPU, or do neither.

Changes when a standstill can have another cause. Reads /proc; nothing here knows an engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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
