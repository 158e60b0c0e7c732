"""What faults cost the own model of a job, gloo and Soft-RoCE, side by side, in virtual time: ``make client-table``.

    python -m tests.product.client_table OUT TABLE.md [--jobs N] [--phase N]... [--only GLOB]... [--table]

Makes the runs that OUT lacks and writes the table of those that it has; of the page's two tables, one without any run
stays as it is. A run whose drill has changed since is made again. Drills and phases are those of
``tests.product.client_cells``; those over lossless switches, at phase 1 only, are those of
``tests.product.lossless_cells``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path

from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.batch.suite.schedule import run_suite
from hpn.scenarios.batch.suite.suite import Run, Suite
from hpn.scenarios.drill.load import drill_from
from hpn.testbed.files.document import parse
from hpn.testbed.vm.engines import ENGINES
from tests.product.client_cells import PHASES, Course, courses
from tests.product.client_loss import losses_of
from tests.product.client_page import Made, page
from tests.product.lossless_cells import Trial, trials
from tests.product.lossless_page import Tried, cost_of

ENGINE = next(spec.name for spec in ENGINES.values() if spec.virtual_time)
DRILL = "drill.yaml"
"""Beside a run: the drill that it was made of."""


def wanted(out: Path, phases: Iterable[int], only: Sequence[str]) -> Iterator[tuple[Course | Trial, Run]]:
    """Every run of the table whose drill matches one of ``only``, phase by phase, so that the table is whole early."""
    for phase in phases:
        every: Iterable[Course | Trial] = chain(courses(), trials() if phase == min(PHASES) else ())
        for course in every:
            if not only or any(fnmatch(course.name, pattern) for pattern in only):
                drill = drill_from(parse(course.drill, f"{out / course.name}.yaml"), out)
                yield course, Run(drill, ENGINE, phase, repeats=max(PHASES))


def kept(out: Path, course: Course | Trial, run: Run) -> RunFolder | None:
    """The folder of a run that was made of just this drill and came to an answer."""
    beside, folder = out / run.folder / DRILL, RunFolder(out / run.folder / course.name)
    is_same = beside.is_file() and beside.read_text() == course.drill
    return folder if is_same and folder.has_verdict else None


def make(out: Path, phases: Sequence[int], only: Sequence[str], jobs: int | None) -> None:
    """Make the runs that are missing, and say what became of each."""
    missing = {run.title: (course, run) for course, run in wanted(out, phases, only) if kept(out, course, run) is None}
    if not missing:
        return

    def begins(run: Run, _where: str) -> None:
        course = missing[run.title][0]
        (out / run.folder).mkdir(parents=True, exist_ok=True)
        (out / run.folder / DRILL).write_text(course.drill)

    suite = Suite("client-table", "", None, tuple(run for _, run in missing.values()))
    for course, _ in missing.values():
        course.write(out)
    with pool_for(out, jobs) as pool:
        for done in run_suite(suite, pool, out, begins):
            print(f"{done.answer}: {done.title} ({done.wall_s:.0f} s) {done.reason}".rstrip(), flush=True)


def made(out: Path) -> Iterator[Made]:
    """Every run that is there, in the order of the table."""
    for course, run in wanted(out, PHASES, ()):
        folder = kept(out, course, run)
        if folder is None or isinstance(course, Trial):
            continue
        metrics = folder.metrics()
        losses = {} if metrics.job is None else losses_of(metrics.job, [result.edge for result in metrics.edges])
        yield Made(course, folder.manifest(), folder.verdict(), losses)


def tried(out: Path) -> Iterator[Tried]:
    """Every run over lossless switches and beside them, in the order of the table."""
    for trial, run in wanted(out, PHASES, ()):
        folder = kept(out, trial, run)
        if folder is not None and isinstance(trial, Trial):
            yield Tried(trial, folder.manifest(), folder.verdict(), cost_of(folder.metrics()))


def main(arguments: Sequence[str]) -> None:
    """Make what is missing, write the table."""
    parser = argparse.ArgumentParser(description="what faults cost a job: own model, gloo, Soft-RoCE")
    parser.add_argument("out", type=Path, help="folder of the runs; those in it are kept")
    parser.add_argument("table", type=Path, help="Markdown to write")
    parser.add_argument("--jobs", type=int, help="runs side by side; default: one per core")
    parser.add_argument("--phase", type=int, choices=PHASES, action="append", help="only this one")
    parser.add_argument("--only", action="append", default=[], help="drills of these names, such as '*-gloo'")
    parser.add_argument("--table", dest="no_runs", action="store_true", help="make no run")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    if not asked.no_runs:
        make(asked.out, asked.phase or PHASES, asked.only, asked.jobs)
    before = asked.table.read_text() if asked.table.exists() else ""
    asked.table.write_text(page(list(made(asked.out)), list(tried(asked.out)), before))


if __name__ == "__main__":
    main(sys.argv[1:])
