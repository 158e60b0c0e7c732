"""What a pool is asked and what it answers, as plain data; and what every pool promises.

Changes when a task must say something more whoever carries it out. Whoever submits one knows what its job makes; a pool
knows no kind of job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hpn.scenarios.run.job import Job
from hpn.testbed.errors import MachineError

LOSSES = 3
"""So many processes or workers that died under a task show that it is the task."""

GIVEN, MADE, OUTPUT, PLUGINS = "given", "made", "output.txt", "plugins"
"""In the folder of an attempt: files that came with the task; what its job makes, and is called in; what it printed;
folders of plug-ins."""


@dataclass(frozen=True, slots=True)
class Task:
    """One job to be done somewhere, in an empty folder of its own.

    ``name`` tells it apart from all others that are submitted with it. ``cores`` that it keeps busy, 0 for a whole
    machine, None when it may share its cores with anything. ``files``: by name, what the job finds in ../given.
    ``timeout_s`` is wall time, None: as long as it takes. ``again``: a process that is killed by a signal says nothing
    of the job, which is done once more.
    """

    name: str
    job: Job
    cores: int | None = None
    timeout_s: float | None = None
    again: bool = True
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a task. ``folder`` holds what its job made, until the next answer is asked for.

    ``code`` is the exit code of the job's process, negative for a signal. With ``error`` there is no answer of the job,
    and ``code`` is that error's: it ``hung``, or took everybody with it who carried it out.
    """

    task: Task
    code: int
    folder: Path
    wall_s: float
    error: str = ""
    hung: bool = False


Begun = Callable[[Task, str], None]
"""Told when a task begins, with the worker that has it ('': this machine); again when another one has it."""


def unheard(_task: Task, _where: str) -> None:
    """Nobody wants to know when a task begins."""


class Pool(Protocol):
    """Carries tasks out, several at a time; ``width`` is how many it likes to have."""

    @property
    def width(self) -> int:
        """How many tasks run side by side."""

    @property
    def far(self) -> bool:
        """Whether tasks are carried out where this machine's files are not."""

    def run(self, tasks: Iterable[Task], on_start: Begun = unheard) -> Iterator[Done]:
        """Every task, once, in the order they end. Closed early, it ends what runs.

        Tasks are taken as they can be carried out, so that those that follow may depend on what became of others.
        MachineError when nobody is left who could carry one out.
        """


def poisoned(task: Task, times: int, places: Sequence[str] = ()) -> str:
    """Of a task that is given up: how often it was tried, and on which workers, as far as they could still tell."""
    where = ", ".join(dict.fromkeys(places))
    on = (
        f"lost with the worker that ran it, {times} times ({where})" if places else f"killed by a signal, {times} times"
    )
    return f"{task.name}: {on}, and is not tried again; run it alone and look at memory (dmesg), or leave it out"


def hung(task: Task, folder: Path, wall_s: float) -> Done:
    """The answer of a task whose time ran out."""
    text = f"{task.name} hung for {task.timeout_s or wall_s:.0f} s, and was ended"
    return Done(task, MachineError.exit_code, folder, wall_s, text, hung=True)
