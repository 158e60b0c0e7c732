"""Runs of a table in docs: the drills that it is made of, each made once in virtual time and kept.

    python -m tests.product.NAME_table OUT TABLE.md [--jobs N] [--phase N]... [--only GLOB]... [--table]

Makes the runs that OUT lacks; then the table is written of those that it has. A run whose drill has changed since is
made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Protocol

from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.batch.suite.schedule import run_suite
from hpn.scenarios.batch.suite.suite import Run, Suite
from hpn.scenarios.drill.load import drill_from
from hpn.testbed.files.document import parse
from hpn.testbed.vm.engines import ENGINES

ENGINE = next(spec.name for spec in ENGINES.values() if spec.virtual_time)
DRILL = "drill.yaml"
"""Beside a run: the drill that it was made of."""


class Cell(Protocol):
    """One drill of a table."""

    @property
    def name(self) -> str:
        """The drill's."""

    @property
    def drill(self) -> str:
        """Its file."""


def written(cell: Cell, folder: Path) -> Path:
    """Write a cell's drill into a folder; return its file."""
    path = folder / f"{cell.name}.yaml"
    path.write_text(cell.drill, encoding="utf-8")
    return path


@dataclass(frozen=True, slots=True)
class Table:
    """The cells that are run at each phase of the protocols' timers."""

    name: str
    about: str
    phases: Mapping[int, Sequence[Cell]]

    def runs(self, out: Path, phases: Sequence[int] = (), only: Sequence[str] = ()) -> Iterator[tuple[Cell, Run]]:
        """Yield every run whose drill matches one of ``only``, phase by phase, so that the table is whole early."""
        for phase in phases or self.phases:
            for cell in self.phases[phase]:
                if not only or any(fnmatch(cell.name, pattern) for pattern in only):
                    drill = drill_from(parse(cell.drill, f"{out / cell.name}.yaml"), out)
                    yield cell, Run(drill, ENGINE, phase, repeats=max(self.phases))

    def made(self, out: Path) -> Iterator[tuple[Cell, RunFolder]]:
        """Yield every run that is there, in the order of the table."""
        for cell, run in self.runs(out):
            folder = kept(out, cell, run)
            if folder is not None:
                yield cell, folder


def kept(out: Path, cell: Cell, run: Run) -> RunFolder | None:
    """The folder of a run that was made of just this drill and came to an answer."""
    beside, folder = out / run.folder / DRILL, RunFolder(out / run.folder / cell.name)
    is_same = beside.is_file() and beside.read_text() == cell.drill
    return folder if is_same and folder.has_verdict else None


def command(table: Table, arguments: Sequence[str]) -> tuple[Path, Path]:
    """Do what a command line asks for; return the folder of the runs and the Markdown file to write."""
    parser = argparse.ArgumentParser(description=table.about)
    parser.add_argument("out", type=Path, help="folder of the runs; those in it are kept")
    parser.add_argument("table", type=Path, help="Markdown to write")
    parser.add_argument("--jobs", type=int, help="runs side by side; default: one per core")
    parser.add_argument("--phase", type=int, choices=[*table.phases], action="append", default=[], help="only this one")
    parser.add_argument("--only", action="append", default=[], help="drills of these names, such as 'mute-*'")
    parser.add_argument("--table", dest="no_runs", action="store_true", help="make no run")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    if not asked.no_runs:
        every = table.runs(asked.out, asked.phase, asked.only)
        _make(table.name, asked.out, asked.jobs, [each for each in every if kept(asked.out, *each) is None])
    return asked.out, asked.table


def _make(name: str, out: Path, jobs: int | None, missing: Sequence[tuple[Cell, Run]]) -> None:
    """Make runs, and say what became of each."""
    cells = {run.title: cell for cell, run in missing}
    if not cells:
        return

    def begins(run: Run, _where: str) -> None:
        (out / run.folder).mkdir(parents=True, exist_ok=True)
        (out / run.folder / DRILL).write_text(cells[run.title].drill)

    for cell in cells.values():
        written(cell, out)
    suite = Suite(name, "", None, tuple(run for _, run in missing))
    with pool_for(out, jobs) as pool:
        for done in run_suite(suite, pool, out, begins):
            print(f"{done.answer}: {done.title} ({done.wall_s:.0f} s) {done.reason}".rstrip(), flush=True)
