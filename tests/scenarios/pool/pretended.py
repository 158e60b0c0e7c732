"""Pools for tests: what a task leaves is made by a function of this process, one task after the other."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hpn.commands.job import kind_of
from hpn.scenarios.batch.pool.attempt import lay_out
from hpn.scenarios.batch.pool.drills import DrillBody, body_from
from hpn.scenarios.batch.pool.task import GIVEN, MADE, OUTPUT, Begun, Done, Task, unheard
from hpn.testbed.errors import HpnError
from hpn.testbed.vm.engines import named

Makes = Callable[[Task, Path], int]


@dataclass
class Pretended:
    """Calls ``makes`` with each task and the folder that its job would be called in; it gives the exit code."""

    makes: Makes
    width: int = 1
    far: bool = False

    def run(self, tasks: Iterable[Task], on_start: Begun = unheard) -> Iterator[Done]:
        for task in tasks:
            on_start(task, "")
            with tempfile.TemporaryDirectory(prefix="hpn-pretended-") as made:
                folder = Path(made) / MADE
                folder.mkdir()
                lay_out(task.files, Path(made) / GIVEN)
                yield Done(task, self.makes(task, folder), folder, 1.5)

    def __enter__(self) -> Pretended:
        return self

    def __exit__(self, *_exception: object) -> None:
        pass


def here(task: Task, folder: Path) -> int:
    """The job itself, in this process: what is patched here is patched there."""
    spec = named(task.job.engine)
    with contextlib.ExitStack() as stack:
        output = stack.enter_context((folder / OUTPUT).open("w"))
        for each in (contextlib.chdir(folder), contextlib.redirect_stdout(output), contextlib.redirect_stderr(output)):
            stack.enter_context(each)
        try:
            return kind_of(task.job)(task.job.body, spec)
        except HpnError as error:
            output.write(f"hpn: {error}\n")
            return error.exit_code


def asked(task: Task) -> DrillBody:
    """What the far end of a drill run is told."""
    return body_from(task.job.body)


def fails(code: int, *said: str) -> Makes:
    """A job that prints and leaves nothing else."""

    def make(_task: Task, folder: Path) -> int:
        (folder / OUTPUT).write_text("".join(f"{line}\n" for line in said))
        return code

    return make
