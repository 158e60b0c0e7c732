"""What a guest is asked to do and what it answers, whichever engine boots it.

Changes when an engine must be told, or must tell, something more. Nothing here knows an engine.
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
"""What a guest's kernel is told at boot, below /proc/sys. Its neighbour table, one for all namespaces, throws out what
is beyond 512 entries, those of a lab of 170 NICs (FACTS trap 4), and in a drill's guest nobody else can say so. Nor for
what waits between two interfaces, 1,000 packets on a CPU: in virtual time all NICs of a lab speak in one instant."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """The far end of a terminal that the command gets: bytes typed and shown go over the stream socket ``fd``."""

    fd: int
    rows: int
    columns: int


def unattended() -> None:
    """Nobody wants to be called while a guest runs."""


@dataclass(frozen=True, slots=True)
class GuestJob:
    """One command to run inside a guest that sees the host's files.

    Everything is read-only there but ``writable``: folders that exist on the host and appear at the same path.
    ``timeout_s`` is wall time, or the guest's own where its time is virtual.
    ``environment`` is added to a small fixed one. An engine that has one CPU only ignores ``cpus``. With ``terminal``
    the command leads a session on it, and no lines are reported. Not in virtual time: nobody types there.
    ``look`` is called now and then, several times a second, by an engine that has somebody up meanwhile.
    """

    command: tuple[str, ...]
    cwd: Path
    writable: tuple[Path, ...]
    environment: Mapping[str, str]
    memory_mb: int
    cpus: int
    timeout_s: float  # for everything, boot included; math.inf: as long as the command takes
    terminal: Terminal | None = None
    seed: int = 1  # of all random numbers in the guest, where its time is virtual
    look: Callable[[], None] = unattended


@dataclass(frozen=True, slots=True)
class GuestResult:
    """How it ended. ``exit_code`` is the command's own, 128 + signal number when a signal ended it."""

    exit_code: int
    console_tail: tuple[str, ...]  # last lines of the guest kernel and of the command, as they came
    boot_s: float  # wall time to the command's start
    wall_s: float
    kernel: str  # release
    last_line: str = ""  # the last that the command printed, '' for nothing; the kernel's farewell comes after it


def environment() -> Mapping[str, str]:
    """What a command of hpn finds in any guest: sets of words in one order, labs of its own, the caller's plug-ins."""
    return {"PYTHONHASHSEED": "0", "HPN_STATE_DIR": "/run/hpn-state", **plugins.environment()}


class Writable:
    """The folders of a job that its guest may write; a guest goes by their names, whatever folder has them now.

    Who sits at a terminal of the guest may delete them.
    """

    def __init__(self, job: GuestJob) -> None:
        """MachineError when one of them is no folder here."""
        self._found: dict[Path, os.stat_result] = {}
        for folder in job.writable:
            if not folder.is_dir():
                raise MachineError(f"{folder}, which the guest should write, is no folder here; create it")
            if job.terminal is None:
                self._found[folder] = folder.stat()

    def check(self) -> None:
        """MachineError when one of them is gone, or another folder has its name."""
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
        """How many times as much a packet costs there as on the host: a drill's traffic is divided by that; 1: not."""

    def check(self) -> None:
        """MachineError, in one line with the way out, when this machine cannot boot such a guest."""

    def describe(self) -> str:
        """What it boots, found out without booting: 'Linux 6.12, /where/it/lies'. After ``check`` only."""

    def run(self, job: GuestJob, on_line: Callable[[str], None]) -> GuestResult:
        """Boot, run, wait. Lines of the command's standard output and error reach ``on_line`` as they come.

        MachineError, with the last lines of the console, when the guest hangs, panics, reports a kernel bug or is
        killed. KeyboardInterrupt and SIGTERM end the guest before they go on. Nothing of the guest is left.
        """
