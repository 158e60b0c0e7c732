"""Tasks and results of a pool as plain data, and the interface of every pool.

Changes when every task needs another setting. The code that submits a task knows the output of its job; a pool knows no
kind of job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hpn.scenarios.run.remote_task import RemoteTask
from hpn.testbed.errors import MachineError

LOSSES = 3
"""Number of processes or workers lost under a task after which the task counts as the cause."""

GIVEN, MADE, OUTPUT, PLUGINS = "given", "made", "output.txt", "plugins"
"""Names in the folder of an attempt.

They are: files that came with the task; results and working directory of its job; its output; folders of plug-ins.
"""


@dataclass(frozen=True, slots=True)
class Task:
    """One job to be done somewhere, in its own empty folder.

    ``name`` identifies it among the tasks submitted together. ``cores``: number of cores that it keeps busy, 0 for a
    whole machine, None if it may share its cores with anything. ``files``: content of ../given by name. ``timeout_s``:
    wall time, None for no limit. ``again``: True to run it again if its process is killed by a signal.
    """

    name: str
    job: RemoteTask
    cores: int | None = None
    timeout_s: float | None = None
    again: bool = True
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """Result of a task. ``folder`` has the output of its job until the next result is requested.

    ``code`` is the exit code of the job's process, negative for a signal. With ``error`` there is no answer of the job,
    and ``code`` is that of the error. Then the task ``hung``, or its processes or workers were lost.
    """

    task: Task
    code: int
    folder: Path
    wall_s: float
    error: str = ""
    hung: bool = False


Begun = Callable[[Task, str], None]
"""Listener called when a task begins, with its worker ('': this machine); again when another worker takes it."""


def unheard(_task: Task, _where: str) -> None:
    """Ignore the start of a task."""


class Pool(Protocol):
    """Executor of tasks, several at a time."""

    @property
    def width(self) -> int:
        """Preferred number of concurrent tasks."""

    @property
    def far(self) -> bool:
        """True if tasks run where this machine's files are not available."""

    def run(self, tasks: Iterable[Task], on_start: Begun = unheard) -> Iterator[Done]:
        """Yield the result of every task, once, in the order they end. If closed early, end the running tasks.

        Tasks are taken as they can be run, so that later ones may depend on results of earlier ones. MachineError when
        no worker is left.
        """


def poisoned(task: Task, times: int, places: Sequence[str] = ()) -> str:
    """Return the message for a task that is given up: the number of attempts, and the workers, as far as known."""
    where = ", ".join(dict.fromkeys(places))
    on = (
        f"lost with the worker that ran it, {times} times ({where})" if places else f"killed by a signal, {times} times"
    )
    return f"{task.name}: {on}, and is not tried again; run it alone and look at memory (dmesg), or leave it out"


def hung(task: Task, folder: Path, wall_s: float) -> Done:
    """Return the result of a task whose time ran out."""
    text = f"{task.name} hung for {task.timeout_s or wall_s:.0f} s, and was ended"
    return Done(task, MachineError.exit_code, folder, wall_s, text, hung=True)
