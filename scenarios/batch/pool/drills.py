"""Drill runs as tasks of a pool: their description for the far end, and the move of a complete run folder.

Changes when the far end of a drill run needs more information. Its work there is in ``commands.drill_runs``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from pydantic import JsonValue, TypeAdapter

from hpn.results.run.folder import RunFolder, create, load
from hpn.scenarios.batch.pool.sent_files import files_of
from hpn.scenarios.batch.pool.task import GIVEN, OUTPUT, Done, Pool, Task
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.model import PutOn
from hpn.scenarios.run.remote_task import JUDGED, RemoteTask, errors_in
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import HpnError, InputError, NoisyError, error_for
from hpn.testbed.package import FOLDER
from hpn.testbed.vm.engines import EngineSpec

_SCENARIOS = FOLDER / "scenarios"


class Root(StrEnum):
    """Place of a drill's file at the far end."""

    HERE = "here"  # at its path, as it is this machine
    GIVEN = "given"  # sent with the task
    PACKAGE = "package"  # part of hpn


@dataclass(frozen=True, slots=True)
class DrillBody:
    """Description of one drill run; ``file`` is below ``root``, ``folder`` is made there, ``home`` is its final place.

    The rest as in ``Order``.
    """

    file: str
    root: Root
    folder: str
    home: str
    command: tuple[str, ...]
    tries: int
    repeat: int
    phase: int
    seed: int
    slow: int | None
    keep_records: bool
    raise_neighbours: bool = False
    topology: PutOn = None  # fabric that replaces the drill's own, or None

    def order(self) -> Order:
        """Return the order, at the far end. InputError for a file that is gone or invalid."""
        below = {Root.HERE: Path(), Root.GIVEN: Path("..", GIVEN), Root.PACKAGE: _SCENARIOS}[self.root]
        drill = catalogue.load(str(below / self.file), self.topology).seeded(self.seed)
        drill = drill.slowed(self.slow) if self.slow else drill
        order = Order(drill, Path(self.folder), self.command, self.repeat, slow=self.slow, phase=self.phase)
        return replace(order, keep_records=self.keep_records, raise_neighbours=self.raise_neighbours)


_BODY = TypeAdapter(DrillBody)


def body_from(body: JsonValue) -> DrillBody:
    """Return the run described by the body of a job."""
    return _BODY.validate_python(body)


def task_for(name: str, order: Order, spec: EngineSpec, tries: int, *, far: bool) -> Task:
    """Return a run as a task; ``far``: True if this machine's files are not available there.

    InputError for files that cannot be sent.
    """
    file, files = Path(order.drill.source).absolute(), dict[str, bytes]()
    root = Root.HERE
    if far and file.resolve().is_relative_to(_SCENARIOS.resolve()):
        root, file = Root.PACKAGE, file.resolve().relative_to(_SCENARIOS.resolve())
    elif far:
        root, files = Root.GIVEN, dict(files_of(file))
        file = Path(file.name)
    body = DrillBody(
        str(file),
        root,
        order.out.name,
        str(order.out),
        order.command,
        tries,
        order.repeat,
        order.phase,
        order.drill.topology.seed,
        order.slow,
        order.keep_records,
        order.raise_neighbours,
        order.drill.put_on,
    )
    return Task(name, RemoteTask("drill", spec.name, _BODY.dump_python(body, mode="json")), spec.cores, files=files)


@dataclass(frozen=True, slots=True)
class RequestedRun:
    """Run requested from a pool; ``keep_output``: True to store its output alongside it."""

    order: Order
    spec: EngineSpec
    tries: int = 1
    keep_output: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """Result of a run by its name: its run folder, in its final place, or the error."""

    name: str
    run: RunFolder | HpnError
    wall_s: float


def run_all(
    pool: Pool, wanted: Mapping[str, RequestedRun], on_start: Callable[[str, str], None] = lambda _name, _where: None
) -> Iterator[Made]:
    """Make every run in the place of its order and yield it when it has ended; names identify the runs.

    ``on_start`` is called with a name and the worker ('' for this machine) when a run begins. A run's place always has
    the complete run or nothing.
    """
    refused: list[Made] = []

    def tasks() -> Iterator[Task]:
        for name, each in wanted.items():
            try:
                _is_free(each.order.out)
                yield task_for(name, each.order, each.spec, each.tries, far=pool.far)
            except HpnError as error:
                refused.append(Made(name, error, 0.0))

    def begins(task: Task, where: str) -> None:
        on_start(task.name, where)
        with suppress(HpnError):  # reported with the result
            create(wanted[task.name].order.out)  # results of an earlier run are no longer valid

    try:
        for done in pool.run(tasks(), begins):
            yield from _taken(refused)
            name = done.task.name
            try:
                found: RunFolder | HpnError = bring_home(done, wanted[name])
            except HpnError as error:
                found = error
            yield Made(name, found, done.wall_s)
        yield from _taken(refused)
    finally:
        for each in wanted.values():
            with suppress(OSError):  # never created, or it has a run
                each.order.out.rmdir()


def _taken(refused: list[Made]) -> Iterable[Made]:
    found = refused[:]
    refused.clear()
    return found


def _is_free(out: Path) -> None:
    """Raise InputError when something other than a run is in a run's place, before the run is made."""
    if out.is_symlink():
        raise InputError(f"{out} is a link, and a run comes to its place by its name; remove it, or use another --out")
    try:
        if os.path.lexists(out) and os.listdir(out):
            load(out)
    except OSError as error:
        raise InputError(f"cannot make run folder {out}: {error.strerror}; choose another with --out") from error


def bring_home(done: Done, wanted: RequestedRun) -> RunFolder:
    """Move a run into its place, complete or not at all; doubtful attempts are stored alongside it.

    Raises the far end's own errors with their messages. InputError when the place has other files.
    """
    out = wanted.order.out
    places = [out, *(out.with_name(f"{out.name}.doubtful-{number}") for number in range(wanted.tries, 0, -1))]
    out.parent.mkdir(parents=True, exist_ok=True)
    output = done.folder / OUTPUT
    words = _said(output)
    if wanted.keep_output and output.is_file():
        os.replace(output, out.with_name(OUTPUT))
    for place in reversed(places):
        made = done.folder / place.name
        if made.is_dir():
            _put(made, create(place).path)
    if out.is_dir() and not os.listdir(out):
        out.rmdir()  # it was cleared, and there is nothing to put there
    if done.error:
        raise error_for(done.code, done.error)
    if done.code not in JUDGED:
        raise error_for(done.code, _last_words(words, done.code))
    if done.code == NoisyError.exit_code and not RunFolder(out).has_verdict:
        raise NoisyError(_last_words(words, done.code))
    return load(out)


def _put(made: Path, place: Path) -> None:
    try:
        made.rename(place)
    except OSError as error:  # another process has written there, or it is another file system
        raise InputError(f"cannot put a run into {place}: {error.strerror}; choose another --out") from error


def _said(output: Path) -> list[str]:
    try:
        lines = output.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line for line in lines if line.strip()]


def _last_words(lines: list[str], code: int) -> str:
    """Return the process's own error lines, or the last line it printed."""
    said = lines[-1].strip() if lines else "it said nothing"
    return "\n".join(errors_in(lines)) or f"the run ended with code {code}: {said}"
