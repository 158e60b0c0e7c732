"""Who watches over a run while it lasts: our own daemons, the queue pairs before the first fault, the disk.

What is lost ends the run at once, with its name: a run without BGP, or with a worker that stands still, says nothing
of the fabric. What a fault did to a daemon is no loss (``BgpDaemon.trouble``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from hpn.scenarios.run import space
from hpn.testbed.errors import MachineError, NoisyError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.kernel.process.processes import is_stopped
from hpn.testbed.lab.lab import Lab
from hpn.traffic.workers.pool import WorkerPool

_SILENT_NS = 10_000_000_000  # a worker says how far it is ten times a second; a starved one now and then


class Guard:
    """Looks at a run now and then, and hears its events; ``engine`` is told when the run is lost.

    ``check`` raises MachineError when the folder is not ours any more. ``processes``: whether to look at process
    states, which costs clock reads: nobody stops one in virtual time.
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
        """From here on queue pairs may die."""
        self._healthy = False

    def heard(self, event: Event) -> None:
        """An event of the lab or of the traffic."""
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
        """What makes no event: a folder that is gone, a full disk, a process that stands still at two looks running."""
        try:
            self._check()
            space.watch(self._folder)
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
        """Before anything is concluded. MachineError when a daemon stands still or is gone."""
        stopped = self._stopped() if self._processes else {}
        for name in stopped.values():
            raise MachineError(f"{name} is stopped, and not by the drill; run it again")
        if self._lab.lost is not None:
            raise MachineError(self._lab.lost)

    def _stopped(self) -> dict[int, str]:
        """Our daemons that somebody stopped (SIGSTOP), by process ID."""
        bgp = {pid: f"{n}: {d.TITLE}" for n, d in self._lab.bgp.items() if not d.held for pid in d.pids}
        workers = {pid: f"traffic worker {index}" for index, pid in self._engine.pids().items()}
        return {pid: f"{name} (process {pid})" for pid, name in (bgp | workers).items() if is_stopped(pid)}
