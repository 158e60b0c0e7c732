"""Interface between a job and a guest, for any engine.

Changes when the input or output of engines changes. Nothing here depends on an engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hpn.testbed import plugins
from hpn.testbed.errors import MachineError

SETTINGS: Mapping[str, int] = {
    "net/ipv4/neigh/default/gc_thresh2": 1 << 16,
    "net/ipv4/neigh/default/gc_thresh3": 1 << 17,
    "net/core/netdev_max_backlog": 1 << 16,
}
"""Settings of a guest's kernel at boot, below /proc/sys.

Its neighbour table, one for all namespaces, evicts entries beyond 512, which is a lab of 170 NICs (FACTS trap 4). In a
drill's guest only this can change it. The backlog between two interfaces holds 1,000 packets per CPU, which is too
little: in virtual time all NICs of a lab send in one instant.
"""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Far end of the command's terminal: typed and shown bytes go over the stream socket ``fd``."""

    fd: int
    rows: int
    columns: int


def unattended() -> None:
    """Do nothing: default of ``look`` for jobs without a callback."""


@dataclass(frozen=True, slots=True)
class GuestJob:
    """One command to run inside a guest that sees the host's files.

    Everything is read-only there but ``writable``: folders that exist on the host and appear at the same path.
    ``timeout_s`` is wall time, or the guest's own if its time is virtual.
    ``environment`` is added to a small fixed one. An engine that has one CPU only ignores ``cpus``. With ``terminal``
    the command leads a session on it, and no lines are reported. Not in virtual time, where typing is impossible.
    ``look`` is called several times a second by an engine that polls meanwhile.
    """

    command: tuple[str, ...]
    cwd: Path
    writable: tuple[Path, ...]
    environment: Mapping[str, str]
    memory_mb: int
    cpus: int
    timeout_s: float  # for everything, boot included; math.inf: as long as the command takes
    terminal: Terminal | None = None
    seed: int = 1  # of all random numbers in the guest, if its time is virtual
    look: Callable[[], None] = unattended


@dataclass(frozen=True, slots=True)
class GuestResult:
    """Result of a guest. ``exit_code`` is the command's own, 128 + signal number when a signal ended it."""

    exit_code: int
    console_tail: tuple[str, ...]  # last lines of the guest kernel and of the command, as they came
    boot_s: float  # wall time to the command's start
    wall_s: float
    kernel: str  # release
    last_line: str = ""  # last line that the command printed, '' if none; the kernel's own last messages come after it


def environment() -> Mapping[str, str]:
    """Return a command's environment in any guest: fixed hash seed, labs of its own, the caller's plug-ins."""
    return {"PYTHONHASHSEED": "0", "HPN_STATE_DIR": "/run/hpn-state", **plugins.environment()}


class Writable:
    """Writable folders of a job; a guest uses their paths, whatever folder is there at the time.

    A user at a terminal of the guest may delete them, so they are not checked then.
    """

    def __init__(self, job: GuestJob) -> None:
        """Record the folders. MachineError when one of them does not exist."""
        self._found: dict[Path, os.stat_result] = {}
        for folder in job.writable:
            if not folder.is_dir():
                raise MachineError(f"{folder}, which the guest should write, is no folder here; create it")
            if job.terminal is None:
                self._found[folder] = folder.stat()

    def check(self) -> None:
        """Raise MachineError when a folder is gone or was replaced."""
        for folder, before in self._found.items():
            try:
                kept = os.path.samestat(folder.stat(), before)
            except OSError:
                kept = False
            if not kept:
                raise MachineError(f"{folder}, which the guest writes, was deleted or moved; run it again")


class Engine(Protocol):
    """A way to run a command under another kernel."""

    @property
    def slowness(self) -> int:
        """Cost of a packet there relative to the host, by which a drill's traffic is divided; 1: unchanged."""

    def check(self) -> None:
        """Raise MachineError, in one line with a remedy, when this machine cannot boot such a guest."""

    def describe(self) -> str:
        """Describe its kernel without booting: 'Linux 6.12, /path/to/it'. After ``check`` only."""

    def run(self, job: GuestJob, on_line: Callable[[str], None]) -> GuestResult:
        """Boot, run, wait. Lines of the command's standard output and error reach ``on_line`` as they come.

        MachineError, with the last lines of the console, when the guest hangs, panics, reports a kernel bug or is
        killed. KeyboardInterrupt and SIGTERM end the guest before they propagate. Nothing of the guest remains.
        """
