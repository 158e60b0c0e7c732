"""Run a suite in a pool, and continue after failures.

Changes when a suite passes more to its runs. The pool decides where they run, and how many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from hpn.results.export.ci import Refusal, ci_junit, ci_summary, refused_junit, refused_summary
from hpn.results.export.ci_runs import CiRun, Repeats
from hpn.results.export.junit import judged
from hpn.results.page.suite import write_suite
from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch.pool.drills import Made, RequestedRun, run_all
from hpn.scenarios.batch.pool.task import OUTPUT, Pool
from hpn.scenarios.batch.suite.suite import Run, Suite
from hpn.scenarios.run import repeats
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import InputError, exit_code_of
from hpn.testbed.files.replacing import replace_text
from hpn.testbed.vm.engines import EngineSpec, named

JUNIT, SUMMARY = "junit.xml", "summary.md"


def run_suite(
    suite: Suite, pool: Pool, out: Path, on_start: Callable[[Run, str], None] = lambda _run, _where: None
) -> Iterator[CiRun]:
    """Make every run, each in OUT/DRILL.ENGINE.N, and yield it when it has ended.

    ``on_start`` also gets the worker, '' for this machine. If the iterator is closed early, it ends the running ones.
    """
    runs = {run.title: run for run in suite.runs}
    for made in run_all(pool, wanted_of(suite, out), lambda title, where: on_start(runs[title], where)):
        yield _judged(runs[made.name], made, out)


def wanted_of(suite: Suite, out: Path) -> dict[str, RequestedRun]:
    """Return every run under its title, as a request to a pool."""
    return {run.title: _wanted(run, out, suite.topology) for run in suite.runs}


def in_order(suite: Suite, runs: Iterable[CiRun]) -> list[CiRun]:
    """Return the runs made so far in the order of the suite, so that reports do not depend on the order of ends."""
    place = {run.title: at for at, run in enumerate(suite.runs)}
    return sorted(runs, key=lambda run: place[run.title])


def _wanted(run: Run, out: Path, topology: str) -> RequestedRun:
    spec, folder = named(run.engine), out / run.folder
    command = (*_words(spec), *(("--topology", topology) if topology else ()), *_options(run, folder))
    order = Order(run.drill, folder / run.name, command, phase=run.repeat)
    return RequestedRun(order, spec, run.tries, keep_output=True)


def _judged(run: Run, made: Made, out: Path) -> CiRun:
    told = partial(CiRun, run.name, run.engine, run.repeat, run.repeats)
    log = out / run.folder / OUTPUT
    if not isinstance(made.run, RunFolder):
        said = str(log) if log.is_file() else ""
        return told(run.folder, made.wall_s, None, str(made.run), exit_code_of(made.run), said)
    answer = judged(made.run, log)
    return told(str(made.run.path.relative_to(out)), made.wall_s, answer, "", answer.verdict.exit_code)


def _words(spec: EngineSpec) -> tuple[str, ...]:
    return ("drill", "run", "--engine", spec.name)


def _options(wanted: Run, folder: Path) -> tuple[str, ...]:
    """Return the options by which a user can repeat this run."""
    options = ("--tries", str(wanted.tries), "--phase", str(wanted.repeat))
    return (wanted.drill.source, "--out", str(folder), *options)


def write_reports(out: Path, suite: Suite, groups: Sequence[Repeats], unused: Sequence[str] = ()) -> None:
    """Write OUT/junit.xml, OUT/summary.md, OUT/suite.json and, for drills with repeats, OUT/repeats.json.

    ``unused``: a line for each baseline without a drill.
    """
    out.mkdir(parents=True, exist_ok=True)
    write_suite(out, suite.name, groups, unused)
    replace_text(out / JUNIT, ci_junit(suite.name, groups, unused))
    replace_text(out / SUMMARY, ci_summary(suite.name, groups, len(suite.runs), unused))
    repeats.write(out, [group.together for group in groups if group.together is not None])


def write_refusal(out: Path, name: str, error: InputError, of: Refusal) -> None:
    """Write OUT/junit.xml and OUT/summary.md of a suite that is not run."""
    replace_text(out / JUNIT, refused_junit(name, error.problems, of))
    replace_text(out / SUMMARY, refused_summary(name, error.problems, of))
