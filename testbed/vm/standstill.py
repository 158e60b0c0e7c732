"""Limit on a guest's silence, and the cause of one: its processes here run, wait for a CPU, or do neither.

Changes when a standstill can have another cause. Reads /proc; nothing here depends on an engine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hpn.testbed.errors import InputError

STALL_S = 120.0
"""Wall time without a sign of the guest's clock after which it is ended."""

STALL_VARIABLE = "HPN_STALL_LIMIT"
"""Environment variable for another limit, in seconds; a starved guest may need a longer one."""

_A_WHILE_S = 2.0
"""Length of a silence after which CPU use is recorded."""
_STATE, _PGRP, _TIMES = 0, 2, slice(11, 15)  # fields of /proc/PID/stat, after the name in brackets
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_MOST = 0.5  # share of the time
_LONGER = 10
"""Limits that a starved guest may be silent for, until it has had half a limit of CPU time."""
_WAITING = Path("/proc/pressure/cpu")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time of a process group so far, and whether any of its processes is runnable now.

    ``waiting_s``: the time in which some process of this machine waited for a CPU, None if the kernel does not report
    it. The kernel's count of a process's own waiting (run delay) is useless here: it is updated only when the process
    finally runs.
    """

    ran_s: float
    wants_more: bool
    waiting_s: float | None = None

    def since(self, before: Usage) -> Usage:
        """Return the difference to an earlier usage."""
        known = self.waiting_s is not None and before.waiting_s is not None
        waiting_s = (self.waiting_s or 0.0) - (before.waiting_s or 0.0) if known else None
        return Usage(max(self.ran_s - before.ran_s, 0.0), self.wants_more, waiting_s)


class Silence:
    """A guest's silence, and its process group's CPU use meanwhile.

    The guest reports its own clock from time to time (``heard``). After ``limit_s`` of wall time without that it is
    ``due``, unless this machine starves it: then it has longer.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since = time.monotonic()
        self._due = self._since + limit_s
        self._clock_s: float | None = None  # the guest's own, at its last report
        self._noted: tuple[float, Usage] | None = None

    def heard(self, clock_s: float) -> None:
        """Record a sign of life: a start, or a report of the guest's own time. Two of them may come in either order."""
        self._since = time.monotonic()
        self._due = self._since + self._limit_s
        self._clock_s = max(self._clock_s or 0.0, clock_s)

    @property
    def clock_s(self) -> float:
        """The guest's own clock at its last report; 0 before."""
        return self._clock_s or 0.0

    @property
    def due(self) -> float:
        """Time at which it will have been silent for too long, on the clock of ``time.monotonic``."""
        return self._due

    @property
    def worth_noting(self) -> float:
        """Time by which ``note`` should be called, on the same clock."""
        return self._since + min(_A_WHILE_S, self._limit_s / 4)

    def note(self, group: int) -> None:
        """Record the guest's CPU use once in each silence, when it has lasted a while.

        If the silence is due and the guest is starved, extend the limit.
        """
        now = time.monotonic()
        if self._noted is None or self._noted[0] < self._since:
            if now >= self.worth_noting:
                self._noted = now, usage(group)
        elif self._due <= now < self._since + _LONGER * self._limit_s:
            since, before = self._noted
            used = usage(group).since(before)
            if starves(used, now - since) and used.ran_s < _MOST * self._limit_s:
                self._due = now + self._limit_s / 8

    def text(self, group: int) -> str:
        """Describe a guest stall: how long, at which clock time, and the likely cause."""
        where = "while booting" if self._clock_s is None else f"its clock stands at {self._clock_s:.1f} s"
        text = f"has been silent for {max(self._limit_s, time.monotonic() - self._since):.0f} s ({where}"
        if self._noted is not None:
            since, before = self._noted
            text += "; " + explain(usage(group).since(before), time.monotonic() - since)
        return f"{text}; allow it longer with --stall-limit)"


def stall_limit() -> float:
    """Return the limit on a guest's silence, in wall seconds. InputError if the environment's value is invalid."""
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
    """Return the usage of the process group, including children that have ended."""
    members = [*_members(group)]
    return Usage(sum(each.ran_s for each in members), any(each.state == "R" for each in members), _waiting_s())


def starves(used: Usage, silent_s: float) -> bool:
    """Return True if a guest with this usage in ``silent_s`` of wall time would continue with more CPU."""
    return used.wants_more and used.ran_s < _MOST * silent_s


def explain(used: Usage, silent_s: float) -> str:
    """Explain a silence of ``silent_s`` with this usage, and what to do about it."""
    had = f"it had {used.ran_s:.0f} s of CPU time in the last {silent_s:.0f} s"
    if used.ran_s >= _MOST * silent_s:
        return f"{had}: something in it busy-waits, or computes for longer than that"
    if starves(used, silent_s):
        waited = None if used.waiting_s is None else min(used.waiting_s / silent_s, 1.0)
        how = "" if waited is None else f"; somebody here waited for a CPU in {100 * waited:.0f} % of that time"
        return f"{had} and wants more: this machine starves it{how}; run less beside it"
    return f"{had} and asks for none: it hangs"


class _Member(NamedTuple):
    pid: int
    state: str
    ran_s: float
    """CPU time including children that have ended and were waited for."""


def _members(group: int) -> Iterator[_Member]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            if int(fields[_PGRP]) == group:
                yield _Member(int(name), fields[_STATE], sum(map(int, fields[_TIMES])) / _TICKS_PER_S)


def _waiting_s() -> float | None:
    """Return the total of 'some' (psi, in microseconds) in seconds, None if the kernel does not provide it."""
    try:
        return int(_WAITING.read_text().split()[4].partition("=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None
