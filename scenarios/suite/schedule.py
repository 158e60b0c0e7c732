"""Makes the runs of a suite in a pool, and goes on after failures.

Changes when a suite tells its runs something more. Where they run, and how many side by side, is the pool's.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

from results.ci import CiRun, Repeats, ci_junit, ci_summary
from results.junit import judged
from results.run.folder import RunFolder
from scenarios.drill import catalogue
from scenarios.drill.model import Drill
from scenarios.pool.drills import Made, Wanted, run_all
from scenarios.pool.task import OUTPUT, Pool
from scenarios.run import estimate, repeats
from scenarios.run.order import Order
from scenarios.run.runs_left import RunsLeft
from scenarios.suite.suite import Run, Suite
from testbed.errors import exit_code_of
from testbed.fabric.load import load_topology
from testbed.files.replacing import replace_text
from testbed.vm.engines import EngineSpec, named

JUNIT, SUMMARY = "junit.xml", "summary.md"


def run_suite(
    suite: Suite, pool: Pool, out: Path, on_start: Callable[[Run, str], None] = lambda _run, _where: None
) -> Iterator[CiRun]:
    """Make every run, each in OUT/DRILL.ENGINE.N, and yield it when it has ended.

    ``on_start`` is told the worker too, '' for this machine. An iterator that is closed early ends those that run.
    """
    runs = {run.title: run for run in suite.runs}
    load = _loader(suite)
    wanted = {title: wanted_of(run, load(str(run.file)), out, suite.topology) for title, run in runs.items()}
    for made in run_all(pool, wanted, lambda title, where: on_start(runs[title], where)):
        yield _judged(runs[made.name], made, out)


def estimate_of(suite: Suite, jobs: int | None) -> str:
    """How long all runs will take here, ``jobs`` (None: one per core) side by side; '' when not above a minute."""
    runs = Counter((str(run.file), run.engine) for run in suite.runs)
    load = _loader(suite)
    asked = ((load(file), named(engine), many) for (file, engine), many in runs.items())
    return estimate.line_of_runs(asked, jobs or len(os.sched_getaffinity(0)))


def left_of(suite: Suite, tell: Callable[[str], None]) -> RunsLeft:
    """What tells how long runs still take as they end, each under its title."""
    load = _loader(suite)
    cost = cache(lambda file, engine: estimate.seconds_of(load(file), named(engine)))
    return RunsLeft({run.title: cost(str(run.file), run.engine) for run in suite.runs}, tell)


def _loader(suite: Suite) -> Callable[[str], Drill]:
    """Reads each drill once, on the suite's topology."""
    topology = load_topology(suite.topology) if suite.topology else None
    return cache(lambda file: catalogue.load(file, topology))


def in_order(suite: Suite, runs: Iterable[CiRun]) -> list[CiRun]:
    """The runs made so far in the order of the suite, whichever ended first: so that reports do not depend on it."""
    place = {run.title: at for at, run in enumerate(suite.runs)}
    return sorted(runs, key=lambda run: place[run.title])


def wanted_of(run: Run, drill: Drill, out: Path, topology: str = "") -> Wanted:
    """What a pool is asked for a run of a suite; ``topology``: what the drill was put on."""
    spec, folder = named(run.engine), out / run.folder
    command = (*_words(spec), *(("--topology", topology) if topology else ()), *_options(run, folder))
    order = Order(drill, folder / run.drill, command, phase=run.repeat)
    return Wanted(order, spec, run.tries, keep_output=True)


def _judged(run: Run, made: Made, out: Path) -> CiRun:
    told = partial(CiRun, run.drill, run.engine, run.repeat, run.repeats)
    log = out / run.folder / OUTPUT
    if not isinstance(made.run, RunFolder):
        said = str(log) if log.is_file() else ""
        return told(run.folder, made.wall_s, None, str(made.run), exit_code_of(made.run), said)
    answer = judged(made.run, log)
    return told(str(made.run.path.relative_to(out)), made.wall_s, answer, "", answer.verdict.exit_code)


def _words(spec: EngineSpec) -> tuple[str, ...]:
    return ("drill", "run", "--engine", spec.name)


def _options(wanted: Run, folder: Path) -> tuple[str, ...]:
    """So a user makes this run again."""
    options = ("--tries", str(wanted.tries), "--phase", str(wanted.repeat))
    return (str(wanted.file), "--out", str(folder), *options)


def write_reports(out: Path, suite: Suite, groups: Sequence[Repeats]) -> None:
    """OUT/junit.xml, OUT/summary.md and, of drills with repeats, OUT/repeats.json."""
    out.mkdir(parents=True, exist_ok=True)
    replace_text(out / JUNIT, ci_junit(suite.name, groups))
    replace_text(out / SUMMARY, ci_summary(suite.name, groups))
    repeats.write(out, [group.together for group in groups if group.together is not None])
