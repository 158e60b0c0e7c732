"""Watchdog of a run: our own daemons, the queue pairs before the first fault, and the disk.

A loss ends the run at once with a named cause. A run without BGP or with a stopped worker says nothing about the
fabric. A daemon that a fault stopped is no loss (``BgpDaemon.trouble``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from hpn.scenarios.run import disk_space
from hpn.testbed.errors import MachineError, NoisyError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.kernel.process.processes import is_stopped
from hpn.testbed.lab.lab import Lab
from hpn.traffic.workers.pool import WorkerPool

_SILENT_NS = 10_000_000_000  # a worker reports its progress ten times a second, a starved one only now and then


class Guard:
    """Watchdog that looks at a run periodically and hears its events; a lost run is reported to ``engine``.

    ``check`` raises MachineError when the folder is no longer ours. ``processes``: True to check process states. This
    costs clock reads and is pointless in virtual time, where no process is stopped from outside.
    """

    def __init__(
        self,
        lab: Lab,
        engine: WorkerPool,
        flows: Collection[int],
        folder: Path,
        check: Callable[[], None],
        *,
        processes: bool,
    ) -> None:
        self._lab = lab
        self._engine = engine
        self._alive = set(flows)
        self._folder = folder
        self._check = check
        self._processes = processes
        self._healthy = True
        self._suspects: set[int] = set()

    def faults_begin(self) -> None:
        """Allow queue pairs to fail from now on."""
        self._healthy = False

    def heard(self, event: Event) -> None:
        """Handle an event of the lab or of the traffic."""
        if event.kind is EventKind.DAEMON and event.what == "died" and self._lab.lost is not None:
            self._engine.give_up(MachineError(self._lab.lost))
        elif event.kind is EventKind.QP and event.what == "error" and self._healthy:
            self._alive.discard(int(event.detail["flow"]))
            if not self._alive:
                self._engine.give_up(
                    NoisyError(
                        "every queue pair died before the first fault: nothing can be said of any; give the workload"
                        " less load, a longer ib_timeout, or --slow 2"
                    )
                )

    def look(self) -> None:
        """Check for silent failures: a missing folder, a full disk, a process stopped in two consecutive checks."""
        try:
            self._check()
            disk_space.watch(self._folder)
        except MachineError as error:
            self._engine.give_up(error)
        if self._processes:
            stopped = self._stopped()
            for pid in self._suspects & stopped.keys():
                self._engine.give_up(MachineError(f"{stopped[pid]} is stopped, and not by the drill; run it again"))
            self._suspects = set(stopped)
            for worker in self._engine.silent_since(now_ns() - _SILENT_NS):
                self._engine.give_up(MachineError(f"traffic worker {worker} has said nothing for 10 s; run it again"))

    def last_look(self) -> None:
        """Check the daemons before the analysis. MachineError when one is stopped or gone."""
        stopped = self._stopped() if self._processes else {}
        for name in stopped.values():
            raise MachineError(f"{name} is stopped, and not by the drill; run it again")
        if self._lab.lost is not None:
            raise MachineError(self._lab.lost)

    def _stopped(self) -> dict[int, str]:
        """Return our processes that were stopped from outside (SIGSTOP), by process ID."""
        bgp = {pid: f"{n}: {d.TITLE}" for n, d in self._lab.bgp.items() if not d.held for pid in d.pids}
        workers = {pid: f"traffic worker {index}" for index, pid in self._engine.pids().items()}
        return {pid: f"{name} (process {pid})" for pid, name in (bgp | workers).items() if is_stopped(pid)}
