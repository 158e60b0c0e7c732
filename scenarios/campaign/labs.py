"""Labs of a campaign: its jobs as tasks of the pool that drills share, and the reports of these tasks.

Changes when a campaign needs something else from its labs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Protocol

from hpn.scenarios.batch.pool.task import OUTPUT, Done, Pool, Task
from hpn.scenarios.campaign import lab_job
from hpn.scenarios.campaign.last_words import last_words
from hpn.scenarios.campaign.result import Report, Result, SequenceJob
from hpn.scenarios.run.remote_task import RemoteTask
from hpn.testbed.vm.engines import HOST, named

Answer = tuple[SequenceJob, Report]


class Labs(Protocol):
    """Runner of jobs, several at a time."""

    @property
    def width(self) -> int:
        """Preferred number of concurrent jobs."""

    def run(self, jobs: Iterable[SequenceJob]) -> Iterator[Answer]:
        """Yield every job with its report, in the order they end. If closed early, end the running jobs."""


class PooledLabs:
    """Labs in the processes of a pool; several share a core."""

    def __init__(self, pool: Pool, engine: str = HOST.name) -> None:
        self._pool = pool
        self._engine = engine
        self._numbers = count(1)

    @property
    def width(self) -> int:
        """Preferred number of concurrent jobs; see ``Labs``."""
        return self._pool.width

    def run(self, jobs: Iterable[SequenceJob]) -> Iterator[Answer]:
        """Yield every job with its report; see ``Labs``."""
        asked: dict[str, SequenceJob] = {}

        def tasks() -> Iterator[Task]:
            for job in jobs:
                name = f"lab {next(self._numbers)}"
                asked[name] = job
                yield task_for(name, job, self._engine)

        for done in self._pool.run(tasks()):
            yield asked.pop(done.task.name), report_of(done, time.time())


def task_for(name: str, job: SequenceJob, engine: str) -> Task:
    """Return a job as a task for a pool. A process that fails is a finding and is not retried."""
    asked = RemoteTask("lab", engine, lab_job.body_of(job))
    timeout_s = lab_job.timeout_s(job) if named(engine).start is None else None  # its starter times a guest
    return Task(name, asked, timeout_s=timeout_s, again=False)


def report_of(done: Done, now: float) -> Report:
    """Return the report of a job that ended ``now`` (epoch seconds), with how its process failed, if it did."""
    found = lab_job.read_report(done.folder)
    if named(done.task.job.engine).start is not None:
        found = replace(found, results=_by_our_clock(found.results, now - done.wall_s, now))
    if found.error:
        return found
    if done.error:
        if done.hung:
            return replace(found, crash="it hung, and was ended")
        return Report(error=done.error, exit_code=done.code)
    if not done.code:
        return found
    try:
        said = (done.folder / OUTPUT).read_text(errors="replace").splitlines()
    except OSError:
        said = []
    return replace(found, crash=f"code {done.code}: {last_words(said)}")


def _by_our_clock(results: Sequence[Result], begun: float, ended: float) -> tuple[Result, ...]:
    """Return results of a guest with times of this machine's clock, as if each sequence had taken equally long.

    A guest's clock may run at another pace.
    """
    each = (ended - begun) / max(len(results), 1)
    return tuple(
        replace(result, started_at=begun + at * each, ended_at=begun + (at + 1) * each)
        for at, result in enumerate(results)
    )
