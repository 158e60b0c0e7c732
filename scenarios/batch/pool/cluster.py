"""Pool of other machines: the workers of a dask scheduler. Needs dask.distributed, the extra ``cluster``.

Scheduler and workers are started by the user: by hand, dask-jobqueue, dask-kubernetes. A lost worker loses its work,
and dask gives its task to another; only one answer is returned.
"""

from __future__ import annotations

import logging
import tempfile
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import dask
import distributed

from hpn.scenarios.batch.pool.archive import unpack
from hpn.scenarios.batch.pool.scratch import handed_over, scratch
from hpn.scenarios.batch.pool.sent_files import Files, plugins_here
from hpn.scenarios.batch.pool.task import LOSSES, MADE, Begun, Done, Task, hung, poisoned, unheard
from hpn.scenarios.batch.pool.version import code_digest
from hpn.scenarios.batch.pool.worker import Ends, Packed, other_version, run_task
from hpn.testbed.errors import HpnError, MachineError, exit_code_of

_ANSWER_S = 10
_LOOK_S = 1
"""Interval in s at which to check which tasks have begun and that a worker is left, while no task ends."""
_PATIENCE = 300
"""Number of checks without any worker before the end: Slurm delays requeued jobs for two minutes."""

_HOME_S = 120
"""Time in s to wait for one answer of at most some 100 MB, while others wait."""

Future: TypeAlias = "distributed.Future[Packed]"  # quoted, as the class of the 2024 release cannot be subscripted


class Cluster:
    """Tasks on the workers of a dask scheduler, one at a time on each thread of a worker. hpn must be installed there.

    Use it in a with statement, which disconnects from the scheduler.
    """

    far = True

    def __init__(self, address: str, below: Path) -> None:
        """Connect to the scheduler at ``address``; results are unpacked in a folder inside ``below``.

        MachineError when no scheduler answers, or its workers cannot run the tasks. InputError when plug-ins cannot be
        sent.
        """
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # our errors report it, in one line
        self._address = address
        self._below = below
        self._plugged = plugins_here()
        self.digest = code_digest()
        try:
            self.client = distributed.Client(address, timeout=_ANSWER_S)
        except (OSError, ValueError, TypeError) as error:
            why = (str(error) or type(error).__name__).splitlines()[0]
            raise MachineError(f"no dask scheduler answers at {address} ({why}); {_way_out(address)}") from error
        try:
            self.width = self.examine()
            self.losses = max(LOSSES, _allowed_failures(self.client))
        except BaseException:
            self.client.close()
            raise
        self.client.register_plugin(Ends())

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.client.close()

    def run(self, tasks: Iterable[Task], on_start: Begun = unheard) -> Iterator[Done]:
        """Run tasks, see ``Pool``. A task whose worker is lost is run again, and given up after ``LOSSES`` losses.

        MachineError when the scheduler, or every worker, is gone.
        """
        with scratch(self._below) as folder:
            work = _Work(self.client, self.digest, folder, on_start, self.losses, self._plugged)
            self.client.subscribe_topic(work.topic, work.hear)
            coming = iter(tasks)
            try:
                while True:
                    self.width = self._workers(work)
                    while len(work.running) < 2 * self.width and (task := next(coming, None)) is not None:
                        work.start(task)
                    if not work.running:
                        return
                    yield from handed_over(work.ended())
            except distributed.CancelledError:
                raise MachineError(
                    f"the scheduler at {self._address} is gone; start it and its workers again,"
                    " then give the same command"
                ) from None
            finally:
                self.client.cancel(list(work.running))
                self.client.unsubscribe_topic(work.topic)

    def examine(self) -> int:
        """Return the number of workers. MachineError when there is none, or one has no hpn or another version."""
        found = self.client.run(code_digest, on_error="return")
        if not found:
            raise MachineError(
                f"the scheduler at {self._address} has no workers; start some: dask worker {self._address}"
            )
        for worker, digest in found.items():
            if digest != self.digest:
                raise MachineError(other_version(worker))
        return len(found)

    def _workers(self, work: _Work) -> int:
        """Return the current number of workers; later ones also get work."""
        found = len(_workers_of(self.client))
        work.alone = 0 if found else work.alone + 1
        if work.alone > _PATIENCE:
            raise MachineError(
                f"the scheduler at {self._address} has lost all workers; start some, then give the same command"
            )
        return found or self.width


def _workers_of(client: distributed.Client) -> Collection[str]:
    """Return the addresses of the scheduler's workers. CancelledError, as for its tasks, when the scheduler is gone."""
    try:
        return set(client.nthreads())
    except OSError as error:  # between two checks
        raise distributed.CancelledError(str(error)) from error


def _allowed_failures(client: distributed.Client) -> int:
    """Return how many workers a task may lose before dask gives it up, from the scheduler's settings."""
    try:
        found = client.run_on_scheduler(dask.config.get, "distributed.scheduler.allowed-failures")
    except ValueError:  # a scheduler with pickle disabled
        return LOSSES
    return found if isinstance(found, int) else LOSSES


def _way_out(address: str) -> str:
    if address.startswith("tls:"):
        return "name your certificates by DASK_DISTRIBUTED__COMM__TLS__CA_FILE, __CLIENT__CERT and __CLIENT__KEY"
    return "start one: dask scheduler"


@dataclass
class _Work:
    """Running tasks. ``begun`` has the workers that began each task, and is written by the client's own thread."""

    client: distributed.Client
    digest: str
    folder: Path
    on_start: Begun
    losses: int
    plugged: Sequence[Files]
    topic: str = field(default_factory=lambda: f"hpn-{uuid.uuid4().hex}")
    running: dict[Future, Task] = field(default_factory=dict)
    begun: dict[str, list[str]] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    alone: int = 0

    def start(self, task: Task) -> None:
        key = f"{self.topic}-{task.name}-{uuid.uuid4().hex}"
        asked = (task, self.plugged, self.topic, self.digest)
        self.running[self.client.submit(run_task, *asked, key=key, pure=False)] = task

    def hear(self, event: object) -> None:
        """Handle an event of the topic, as ``run_task`` logs it."""
        match event:
            case (_, {"name": str() as name, "where": str() as where}):
                self.begun.setdefault(name, []).append(where)

    def ended(self) -> Iterator[Done]:
        """Yield the tasks that have ended, after at most ``_LOOK_S``; lost ones are started again."""
        try:
            ready = distributed.wait(list(self.running), timeout=_LOOK_S, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            ready = set()
        self._tell()
        yield from self._given_up()
        for future in ready & self.running.keys():
            try:
                done = self._answer(self.running[future], future)
            except TimeoutError:  # lost with the worker that had it, and made again: there is more to do meanwhile
                continue
            task = self.running.pop(future)
            future.release()
            if done is None:
                self.rounds[task.name] = self.rounds.get(task.name, 0) + 1
                self.start(task)
            else:
                yield done

    def _given_up(self) -> Iterator[Done]:
        """Yield tasks that have lost too many workers, before dask retries them.

        Dask also counts tasks that only waited.
        """
        suspects = [each for each, task in self.running.items() if len(self._places(task)) >= self.losses]
        there = _workers_of(self.client) if suspects else ()
        for future in suspects:
            task = self.running[future]
            *lost, last = self._places(task)
            if last not in there:
                lost.append(last)
            if len(lost) >= self.losses and not future.done():
                del self.running[future]
                future.cancel()
                yield self._without(task, poisoned(task, len(lost), lost))

    def _places(self, task: Task) -> list[str]:
        return list(self.begun.get(task.name, ()))

    def _tell(self) -> None:
        for task in self.running.values():
            places = self._places(task)
            for where in places[self.told.get(task.name, 0) :]:
                self.on_start(task, where)
            self.told[task.name] = len(places)

    def _answer(self, task: Task, future: Future) -> Done | None:
        """Return the result or the worker's error; None when the task is to start again.

        TimeoutError when no worker has the result any more.
        """
        failed = future.exception(timeout=_HOME_S)
        if isinstance(failed, distributed.scheduler.KilledWorker):
            return self._lost(task)
        if failed is not None:
            text = str(failed) if isinstance(failed, HpnError) else f"a worker of the scheduler failed: {failed!r}"
            return self._without(task, text, exit_code_of(failed))
        packed = future.result(timeout=_HOME_S)
        if not isinstance(packed, Packed):
            return self._without(task, f"a worker of the scheduler answered {str(packed)[:80]!r}, which is no run")
        return self._lost(task) if packed.code < 0 and task.again and not packed.hung else self._home(task, packed)

    def _lost(self, task: Task) -> Done | None:
        """Return the result of a task that dask gave up or whose process was killed, or None to run it again.

        The task counts a loss only if it had begun, not if it waited for that worker.
        """
        places = self._places(task)
        times = max(len(places), self.rounds.get(task.name, 0) + 1)
        return None if times < self.losses else self._without(task, poisoned(task, times, places or ("not told",)))

    def _home(self, task: Task, packed: Packed) -> Done:
        folder = self._place()
        try:
            unpack(packed.content, folder)
        except MachineError as trouble:
            return self._without(task, f"{task.name}: {trouble}")
        if packed.hung:
            return hung(task, folder, packed.wall_s)
        return Done(task, packed.code, folder, packed.wall_s)

    def _without(self, task: Task, error: str, code: int = MachineError.exit_code) -> Done:
        return Done(task, code, self._place(), 0.0, error)

    def _place(self) -> Path:
        made = Path(tempfile.mkdtemp(dir=self.folder)) / MADE
        made.mkdir()
        return made
