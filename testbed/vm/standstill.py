"""Why a guest's clock stands: whether its processes on this machine run, wait for a CPU, or do neither.

Changes when a standstill can have another cause. Reads /proc; nothing here knows an engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PGRP = 2  # of /proc/PID/stat, behind the name in brackets
_NS = 1e9
_MOST = 0.5  # of the time


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process group has had so far, in seconds: CPU time, and time it was ready to run and had to wait for it.

    Of processes that have ended nothing is known any more.
    """

    ran_s: float
    waited_s: float

    def since(self, before: Usage) -> Usage:
        """What came on top."""
        return Usage(max(self.ran_s - before.ran_s, 0.0), max(self.waited_s - before.waited_s, 0.0))


def usage(group: int) -> Usage:
    """Of the process group of that number, from each process's schedstat (run time, run delay); zeros where none is."""
    ran = waited = 0.0
    for pid in _members(group):
        try:
            found = Path(f"/proc/{pid}/schedstat").read_text().split()
        except OSError:  # it ended, or this kernel keeps no such
            continue
        ran, waited = ran + int(found[0]) / _NS, waited + int(found[1]) / _NS
    return Usage(ran, waited)


def explain(used: Usage, silent_s: float) -> str:
    """What a guest did that was silent for ``silent_s`` and used so much meanwhile, and what to do about it."""
    had = f"it had {used.ran_s:.0f} s of CPU time meanwhile"
    if used.ran_s >= _MOST * silent_s:
        return f"{had}: something in it busy-waits, or computes for longer than that"
    if used.ran_s + used.waited_s >= _MOST * silent_s:
        return f"{had} and waited {used.waited_s:.0f} s for more: this machine starves it; run less beside it"
    return f"{had} and asked for no more: it hangs"


def _members(group: int) -> Iterator[str]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[_PGRP]) == group:
            yield name
