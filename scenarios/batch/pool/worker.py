"""What is done on the worker of a dask scheduler. Needs dask.distributed.

A worker runs the very same command as this machine would, in a folder of its own, and sends that folder home as bytes:
so machines need no file system in common, and only who asked writes into the folder of a run. It refuses when it has
another version of this product, and ends a task that nobody waits for any more, for instance because hpn was killed.
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
from hpn.scenarios.batch.pool.given import Files
from hpn.scenarios.batch.pool.task import MADE, Task
from hpn.scenarios.batch.pool.turn import turn
from hpn.scenarios.batch.pool.version import code_digest
from hpn.testbed.errors import MachineError
from hpn.testbed.lab.service.registry import base_directory

_running: dict[Key, Attempt] = {}
"""On a worker: what it does for each task; a task that is not in here is not wanted any more."""


@dataclass(frozen=True, slots=True)
class Packed:
    """What a worker sends home: as ``Ended`` and ``Done``, and the folder as ``archive`` packs one."""

    code: int
    hung: bool
    wall_s: float
    content: bytes


class Ends(WorkerPlugin):
    """On every worker: ends what is done for a task that is cancelled, or whose worker closes: dask would wait."""

    name = "hpn-pool"
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
    attempt = _running.pop(key, None)
    if attempt is not None:
        attempt.end()


def run_task(task: Task, plugged: Sequence[Files], topic: str, digest: str) -> Packed:
    """Do a task with its files and plug-ins in the worker's folder: the next worker there clears away a crash's.

    ``topic`` is told that it begins. MachineError when the code here is not that of ``digest``, or what the task left
    cannot be sent.
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
            raise distributed.Reschedule  # it was ended: how its process died is not the task's doing


def other_version(worker: str) -> str:
    """Of a worker that is refused."""
    return f"the worker at {worker} has no hpn or another version than this machine; install this one there"


@contextmanager
def _machine(task: Task, attempt: Attempt) -> Iterator[None]:
    """Wait until no other worker of this user measures on this machine, when the task takes all of it."""
    if task.cores is None:
        yield
        return
    with turn(base_directory(), not task.cores, attempt.wanted):
        yield
