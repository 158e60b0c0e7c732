"""Jobs of a campaign on other machines: the workers of a dask scheduler. Needs the extra ``campaign``.

A worker runs the very same command as this machine would. It refuses when it has another version of this product, and
ends a job that nobody waits for any more, for instance because the campaign was killed.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import distributed
from dask.typing import Key
from distributed.diagnostics.plugin import WorkerPlugin

from scenarios.campaign.pools import Done, kill, run_job
from scenarios.campaign.result import Job, Report
from testbed import PACKAGES
from testbed.errors import HpnError, MachineError, exit_code_of
from testbed.vm.engines import HOST

_ROOT = Path(__file__).resolve().parent.parent.parent
_ANSWER_S = 10
_LOOK_S = 30
"""How often to look, while no job ends, whether there is a worker left."""

Task: TypeAlias = "distributed.Future[Report]"  # quoted: 2024's class cannot be subscripted

_running: dict[Key, set[int]] = {}
"""On a worker: the processes of each task; a task that is not in here is not wanted any more."""


class Machines:
    """Jobs on the workers of a dask scheduler, one at a time on each. HPN must be installed there too."""

    def __init__(self, address: str, engine: str = HOST.name) -> None:
        """MachineError when nobody answers at ``address``, or a scheduler whose workers cannot do it."""
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # our errors say it, in one line
        self._address = address
        self._engine = engine
        self.digest = code_digest()
        try:
            self.client = distributed.Client(address, timeout=_ANSWER_S)
        except (OSError, ValueError) as error:
            raise MachineError(
                f"no dask scheduler answers at {address} ({error}); start one: dask scheduler"
            ) from error
        try:
            self.width = self.examine()
        except MachineError:
            self.client.close()
            raise
        self.client.register_plugin(_Ends())

    def run(self, jobs: Iterable[Job]) -> Iterator[Done]:
        """See ``Pool``. A worker that is lost takes its job's report with it; others run it again.

        MachineError when the scheduler, or every worker, is gone.
        """
        waiting = iter(jobs)
        running: dict[Task, Job] = {}
        try:
            while True:
                while len(running) < self.width and (job := next(waiting, None)) is not None:
                    task = self.client.submit(run_task, job, self._engine, self.digest, pure=False)
                    running[task] = job
                if not running:
                    return
                for task in self._ended(list(running)):
                    yield running.pop(task), self._report(task)
        except distributed.CancelledError:
            raise MachineError(
                f"the scheduler at {self._address} is gone; start it and its workers again, then give the same command"
            ) from None
        finally:
            self.client.cancel(list(running))

    def close(self) -> None:
        """Let go of the scheduler."""
        self.client.close()

    def examine(self) -> int:
        """How many workers there are. MachineError when there is none, or one has no hpn or another version."""
        found = self.client.run(code_digest, on_error="return")
        if not found:
            raise MachineError(
                f"the scheduler at {self._address} has no workers; start some: dask worker {self._address}"
            )
        for worker, digest in found.items():
            if digest != self.digest:
                raise MachineError(_other_version(worker))
        return len(found)

    def _ended(self, tasks: list[Task]) -> list[Task]:
        while True:
            try:
                return list(distributed.wait(tasks, timeout=_LOOK_S, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                if not self.client.nthreads():
                    raise MachineError(
                        f"the scheduler at {self._address} has lost all workers; start some, then give the same command"
                    ) from None

    def _report(self, task: Task) -> Report:
        """The report, or what the worker could not do: dask hands its exceptions over as they are."""
        failed = task.exception()
        if failed is None:
            report = task.result()
            if isinstance(report, Report):
                return report
            failed = MachineError(f"a worker of the scheduler answered {report!r}, which is no report")
        text = str(failed) if isinstance(failed, HpnError) else f"a worker of the scheduler failed: {failed}"
        return Report(error=text, exit_code=exit_code_of(failed))


class _Ends(WorkerPlugin):
    """On every worker: ends the lab of a task that is cancelled, or whose worker closes: dask would wait for it."""

    name = "hpn-campaign"
    idempotent = True

    def transition(self, key: Key, start: str, finish: str, **_: object) -> None:
        """See ``WorkerPlugin``."""
        if finish == "released":
            _end(key)

    def teardown(self, worker: distributed.Worker) -> None:
        """See ``WorkerPlugin``."""
        for key in list(_running):
            _end(key)


def _end(key: Key) -> None:
    for pid in _running.pop(key, ()):
        kill(pid)


def run_task(job: Job, engine: str, digest: str) -> Report:
    """On a worker: ``run_job``, with its files in the worker's folder: the next worker there clears away a crash's.

    MachineError when the code there is not that of ``digest``.
    """
    worker = distributed.get_worker()
    if code_digest() != digest:
        raise MachineError(_other_version(worker.address))
    key = worker.get_current_task()
    pids: set[int] = set()
    _running[key] = pids
    try:
        return run_job(job, engine, Path(worker.local_directory), pids)
    finally:
        if _running.pop(key, None) is None:
            raise distributed.Reschedule  # it was ended: how the lab died is not the product's doing


def _other_version(worker: str) -> str:
    return f"the worker at {worker} has no hpn or another version than this machine; install this one there"


def code_digest() -> str:
    """Of the product's code on this machine, which is what a job's process would run now."""
    digest = hashlib.sha256()
    for path in sorted(path for room in PACKAGES for path in (_ROOT / room).rglob("*.py")):
        digest.update(f"{path.relative_to(_ROOT)}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
