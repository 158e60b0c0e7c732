"""Pool of this machine: a separate process for each task. They always end with this process."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hpn.scenarios.batch.pool.attempt import Attempt
from hpn.scenarios.batch.pool.scratch import handed_over, scratch
from hpn.scenarios.batch.pool.task import LOSSES, MADE, OUTPUT, Begun, Done, Task, hung, poisoned, unheard
from hpn.testbed.errors import MachineError

_TAIL_BYTES = 4096


class Processes:
    """Tasks in processes of this machine, at most ``width`` at a time, and never more than its cores carry."""

    far = False

    def __init__(
        self,
        width: int,
        below: Path,
        cores: int | None = None,
        attempt: Callable[[], Attempt] = Attempt,
        on_wait: Begun = unheard,
        every_s: float = 30.0,
    ) -> None:
        """Make attempts in a folder inside ``below``, created when needed. ``cores``: None for all of this machine.

        While no task ends, ``on_wait`` is called every ``every_s`` seconds with each running task and its last line of
        output.
        """
        self.width = width
        self._below = below
        self._cores = cores or len(os.sched_getaffinity(0))
        self._attempt = attempt
        self._on_wait, self._every_s = on_wait, every_s

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_exception: object) -> None:
        """Do nothing: no state is kept between two calls of ``run``."""

    def run(self, tasks: Iterable[Task], on_start: Begun = unheard) -> Generator[Done, None, None]:
        """Run tasks, see ``Pool``. Tasks start in order, but those that fit with the running ones go first.

        When none is running, any task fits.
        """
        with scratch(self._below) as folder, ThreadPoolExecutor(self.width) as threads:
            work = _Work(folder, threads, self._attempt)
            coming, waiting = iter(tasks), list[Task]()
            try:
                while True:
                    while len(work.running) < self.width and (task := self._next(waiting, coming, work.tasks())):
                        on_start(task, "")
                        work.start(task)
                    if not work.running:
                        return
                    while not work.some_ended(self._every_s):
                        for task, line in work.last_lines():
                            self._on_wait(task, line)
                    yield from handed_over(work.ended())
            finally:
                work.end()

    def _next(self, waiting: list[Task], coming: Iterator[Task], running: Collection[Task]) -> Task | None:
        """Return the first task that fits with the running ones; the others are put on the waiting list."""
        free = self._cores - sum(map(self._needs, running))
        for at, task in enumerate(waiting):
            if not running or self._needs(task) <= free:
                return waiting.pop(at)
        for task in coming:
            if not running or self._needs(task) <= free:
                return task
            waiting.append(task)
        return None

    def _needs(self, task: Task) -> int:
        return 0 if task.cores is None else min(task.cores or self._cores, self._cores)


@dataclass
class _Work:
    """Running tasks."""

    folder: Path
    threads: ThreadPoolExecutor
    make: Callable[[], Attempt]
    running: dict[Future[Done], tuple[Task, Attempt, Path]] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)

    def tasks(self) -> list[Task]:
        return [task for task, _, _ in self.running.values()]

    def start(self, task: Task) -> None:
        attempt = self.make()
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        self.running[self.threads.submit(_carry_out, task, attempt, folder)] = task, attempt, folder

    def some_ended(self, within_s: float) -> bool:
        """Wait for the end of a task, at most ``within_s``; return True if one ended."""
        return bool(wait(self.running, within_s, return_when=FIRST_COMPLETED).done)

    def last_lines(self) -> Iterator[tuple[Task, str]]:
        """Yield the last output line of each task, or ''."""
        for task, _, folder in self.running.values():
            yield task, _last_line(folder / MADE / OUTPUT)

    def ended(self) -> Iterator[Done]:
        """Yield the ended tasks; one whose process was killed starts again, unless the task itself is the cause."""
        ready, _ = wait(self.running, return_when=FIRST_COMPLETED)
        for future in ready:
            task, _, _ = self.running.pop(future)
            done = future.result()
            if done.code >= 0 or done.error or not task.again:
                yield done
                continue
            times = self.lost[task.name] = self.lost.get(task.name, 0) + 1
            if times < LOSSES:
                shutil.rmtree(done.folder.parent, ignore_errors=True)
                self.start(task)
            else:
                why = poisoned(task, times)
                yield Done(task, MachineError.exit_code, done.folder, done.wall_s, why)

    def end(self) -> None:
        """End the running tasks, and wait for them."""
        for future, (_, attempt, _) in self.running.items():
            future.cancel()
            attempt.end()
        with suppress(KeyboardInterrupt):  # on a second Ctrl-C do not wait
            wait(self.running)


def _last_line(file: Path) -> str:
    try:
        with file.open("rb") as printed:
            printed.seek(max(printed.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            lines = printed.read().decode(errors="replace").splitlines()
    except OSError:  # it has not begun
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _carry_out(task: Task, attempt: Attempt, folder: Path) -> Done:
    begun = time.monotonic()
    ended = attempt.run(task, folder)
    wall_s = time.monotonic() - begun
    return hung(task, folder / MADE, wall_s) if ended.hung else Done(task, ended.code, folder / MADE, wall_s)
