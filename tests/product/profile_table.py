"""What faults cost hosts of each profile, in virtual time: ``make profile-table``.

    python -m tests.product.profile_table OUT TABLE.md [--jobs N] [--phase N]... [--only GLOB]... [--table]

Makes the runs that OUT lacks and writes the table of those that it has. A run whose drill has changed since is made
again. The drills are those of ``tests.product.profile_cells``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.batch.suite.schedule import run_suite
from hpn.scenarios.batch.suite.suite import Run, Suite
from hpn.scenarios.drill.load import drill_from
from hpn.testbed.files.document import parse
from hpn.testbed.vm.engines import ENGINES
from tests.product.profile_cells import Trial, trials
from tests.product.profile_page import Made, cost_of, page

ENGINE = next(spec.name for spec in ENGINES.values() if spec.virtual_time)
PHASES = (1, 2, 3)
DRILL = "drill.yaml"
"""Beside a run: the drill that it was made of."""


def wanted(out: Path, phases: Iterable[int], only: Sequence[str] = ()) -> Iterator[tuple[Trial, Run]]:
    """Every run of the table whose drill matches one of ``only``, phase by phase, so that the table is whole early."""
    for phase in phases:
        for trial in trials():
            if not only or any(fnmatch(trial.name, pattern) for pattern in only):
                drill = drill_from(parse(trial.drill, f"{out / trial.name}.yaml"), out)
                yield trial, Run(drill, ENGINE, phase, repeats=max(PHASES))


def kept(out: Path, trial: Trial, run: Run) -> RunFolder | None:
    """The folder of a run that was made of just this drill and came to an answer."""
    beside, folder = out / run.folder / DRILL, RunFolder(out / run.folder / trial.name)
    is_same = beside.is_file() and beside.read_text() == trial.drill
    return folder if is_same and folder.has_verdict else None


def make(out: Path, phases: Sequence[int], only: Sequence[str], jobs: int | None) -> None:
    """Make the runs that are missing, and say what became of each."""
    missing = {run.title: (trial, run) for trial, run in wanted(out, phases, only) if kept(out, trial, run) is None}
    if not missing:
        return

    def begins(run: Run, _where: str) -> None:
        (out / run.folder).mkdir(parents=True, exist_ok=True)
        (out / run.folder / DRILL).write_text(missing[run.title][0].drill)

    for trial, _ in missing.values():
        (out / f"{trial.name}.yaml").write_text(trial.drill)
    suite = Suite("profile-table", "", None, tuple(run for _, run in missing.values()))
    with pool_for(out, jobs) as pool:
        for done in run_suite(suite, pool, out, begins):
            print(f"{done.answer}: {done.title} ({done.wall_s:.0f} s) {done.reason}".rstrip(), flush=True)


def made(out: Path) -> Iterator[Made]:
    """Every run that is there, in the order of the table."""
    for trial, run in wanted(out, PHASES):
        folder = kept(out, trial, run)
        if folder is not None:
            yield Made(trial, folder.manifest(), folder.verdict(), cost_of(folder.metrics()))


def main(arguments: Sequence[str]) -> None:
    """Make what is missing, write the table."""
    parser = argparse.ArgumentParser(description="what faults cost hosts of each profile")
    parser.add_argument("out", type=Path, help="folder of the runs; those in it are kept")
    parser.add_argument("table", type=Path, help="Markdown to write")
    parser.add_argument("--jobs", type=int, help="runs side by side; default: one per core")
    parser.add_argument("--phase", type=int, choices=PHASES, action="append", help="only this one")
    parser.add_argument("--only", action="append", default=[], help="drills of these names, such as 'mute-*'")
    parser.add_argument("--table", dest="no_runs", action="store_true", help="make no run")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    if not asked.no_runs:
        make(asked.out, asked.phase or PHASES, asked.only, asked.jobs)
    asked.table.write_text(page(list(made(asked.out))))


if __name__ == "__main__":
    main(sys.argv[1:])
