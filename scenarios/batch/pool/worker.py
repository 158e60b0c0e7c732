"""Code that runs on the worker of a dask scheduler. Needs dask.distributed.

A worker runs the same command as this machine would, in its own folder, and returns that folder as bytes. So machines
need no shared file system, and only the requesting machine writes run folders. A worker refuses tasks of another
version of hpn. It ends a task whose result is no longer needed, for instance because hpn was killed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import distributed
from dask.typing import Key
from distributed.diagnostics.plugin import WorkerPlugin

from hpn.scenarios.batch.pool.archive import pack
from hpn.scenarios.batch.pool.attempt import Attempt
from hpn.scenarios.batch.pool.queue import turn
from hpn.scenarios.batch.pool.sent_files import Files
from hpn.scenarios.batch.pool.task import MADE, Task
from hpn.scenarios.batch.pool.version import code_digest
from hpn.testbed.errors import MachineError
from hpn.testbed.lab.service.registry import base_directory

_running: dict[Key, Attempt] = {}
"""Attempts of this worker by task; a task that is not in here is no longer wanted."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Result from a worker: as ``Ended`` and ``Done``, with the folder packed by ``archive``."""

    code: int
    hung: bool
    wall_s: float
    content: bytes


class Ends(WorkerPlugin):
    """Plug-in of every worker: end the attempt of a cancelled task or a closing worker, for which dask would wait."""

    name = "hpn-pool"
    idempotent = True

    def transition(self, key: Key, start: str, finish: str, **_: object) -> None:
        """End the attempt of a released task, see ``WorkerPlugin``."""
        if finish == "released":
            _end(key)

    def teardown(self, worker: distributed.Worker) -> None:
        """End all attempts of a closing worker, see ``WorkerPlugin``."""
        for key in list(_running):
            _end(key)


def _end(key: Key) -> None:
    attempt = _running.pop(key, None)
    if attempt is not None:
        attempt.end()


def run_task(task: Task, plugged: Sequence[Files], topic: str, digest: str) -> Packed:
    """Run a task with its files and plug-ins in the worker's folder.

    The next worker there removes leftovers of a crash. The start is reported to ``topic``. MachineError when the code
    here does not have ``digest``, or the result cannot be sent.
    """
    worker = distributed.get_worker()
    if code_digest() != digest:
        raise MachineError(other_version(worker.address))
    key, attempt, begun = worker.get_current_task(), Attempt(plugged), time.monotonic()
    _running[key] = attempt
    worker.log_event(topic, {"name": task.name, "where": worker.address})
    try:
        with tempfile.TemporaryDirectory(prefix="hpn-pool-", dir=worker.local_directory) as made:
            with _machine(task, attempt):
                ended = attempt.run(task, Path(made))
            return Packed(ended.code, ended.hung, time.monotonic() - begun, pack(Path(made) / MADE))
    finally:
        if _running.pop(key, None) is None:
            raise distributed.Reschedule  # ended from outside: its exit says nothing about the task


def other_version(worker: str) -> str:
    """Return the message for a refused worker."""
    return f"the worker at {worker} has no hpn or another version than this machine; install this one there"


@contextmanager
def _machine(task: Task, attempt: Attempt) -> Iterator[None]:
    """Wait until no other worker of this user measures on this machine, if the task needs the whole machine."""
    if task.cores is None:
        yield
        return
    with turn(base_directory(), not task.cores, attempt.wanted):
        yield
