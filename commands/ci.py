"""Suites of drills."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from hpn.commands.completing import topologies
from hpn.commands.engine_option import scheduler_option
from hpn.commands.followers import tell_next
from hpn.commands.outfile import make_folder, write
from hpn.commands.overall_page import leave_page
from hpn.commands.page import Page, Share, json_option, starting, tell_left_out
from hpn.commands.schemas import schema_command
from hpn.commands.waiting import say, still_runs, waiting
from hpn.results.export.ci import OF_BASELINES, OF_FILES, ci_document, ci_table, gate_lines
from hpn.results.export.ci_runs import Repeats, grouped
from hpn.results.export.ci_runs import exit_code as ci_exit_code
from hpn.results.index.scan import run_folders
from hpn.results.run.folder import prepare
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.batch.suite import baselines, schedule
from hpn.scenarios.batch.suite.json_schema import suite_schema
from hpn.scenarios.batch.suite.suite import Run, Suite, load_suite
from hpn.scenarios.run.runs_left import RunsLeft
from hpn.testbed.errors import InputError
from hpn.testbed.vm.engines import ENGINES

_DIR = click.Path(file_okay=False, path_type=Path)


@click.group()
def ci() -> None:
    """Suites of drills for continuous integration: one report, one exit code."""


ci.add_command(schema_command("suite", "docs/ci.md", lambda: suite_schema(ENGINES)))


@ci.command("run")
@click.argument("suite", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("ci-out"), show_default=True)
@click.option("--jobs", type=click.IntRange(1, 256), help="Runs side by side; default: the suite's, or one per core.")
@click.option(
    "--baseline", type=_DIR, metavar="DIR", help="Exit code 1 where a figure is worse than --save kept in DIR."
)
@click.option(
    "--tolerance",
    type=Share(),
    metavar="PERCENT",
    help="With --baseline: a figure is worse only by more than that share of its baseline; default: 0 %.",
)
@click.option("--save", type=_DIR, metavar="DIR", help="Keep the figures of each drill that passes in DIR.")
@click.option(
    "--topology",
    default="",
    metavar="NAME|FILE",
    shell_complete=topologies,
    help="Your fabric in the place of each drill's own.",
)
@scheduler_option
@json_option
def ci_run(
    suite: Path,
    out: Path,
    baseline: Path | None,
    tolerance: float | None,
    save: Path | None,
    topology: str,
    jobs: int | None,
    scheduler: str | None,
    as_json: bool,
) -> int:
    """Run every drill of a suite file on its engines, go on after failures, write OUT/junit.xml and OUT/summary.md.

    A run on the host or in QEMU has the machine to itself; guests with virtual time disturb nobody.

    --save DIR keeps the figures of each drill in a small file, --baseline DIR fails what is worse by more than the
    intervals of both. A baseline of another fabric, drill, engine or load is refused; timers and policies may differ.

    \b
    hpn ci run suite.yaml --save baseline            # once, then commit baseline/
    hpn ci run suite.yaml --baseline baseline        # in CI: 1 where one is worse
    """
    page, wanted = Page(as_json), _wanted(suite, topology, out)
    tell_left_out(wanted.left_out)
    prepare(out)
    kept = _kept(wanted, baseline, tolerance, out)
    if save is not None:
        make_folder(save, "--save")
    runs = []
    side_by_side = jobs if jobs is not None or scheduler is not None else wanted.parallel
    with pool_for(out, side_by_side, scheduler, still_runs) as pool:
        left = waiting(schedule.wanted_of(wanted, out), pool.width, elsewhere=pool.far)
        try:
            for run in schedule.run_suite(wanted, pool, out, partial(_begun, page, left)):
                runs.append(run)
                page.tell(f"{run.answer}: {run.title} ({run.wall_s:.0f} s) {run.reason}".rstrip())
                left.ended(run.title)
        finally:
            groups = baselines.gated(grouped(schedule.in_order(wanted, runs)), out, kept)
            schedule.write_reports(out, wanted, groups, kept.unused if kept is not None else ())
            if len(runs) < len(wanted.runs):  # it was interrupted
                leave_page(out, page)
    page.show(ci_table(wanted.name, groups))
    for line in gate_lines(groups):
        page.tell(line)
    if save is not None:
        _save(groups, out, save, page)
    leave_page(out, page)
    page.end(lambda: ci_document(groups))
    bad = next((out / run.folder for run in runs if run.judged is not None and run.answer != "pass"), None)
    tell_next("ci run", quiet=as_json, run=bad, folder=None if bad else out)
    return ci_exit_code(groups)


def _begun(page: Page, left: RunsLeft, run: Run, where: str) -> None:
    page.tell(starting(run.title, where))
    left.begun(run.title)


def _wanted(suite: Path, topology: str, out: Path) -> Suite:
    """Return the suite; mistakes in its files are also reported in OUT, which a CI system collects."""
    try:
        return load_suite(suite, ENGINES, topology)
    except InputError as error:
        if suite.is_file():
            with suppress(InputError):  # of OUT: mistakes in the files have priority
                prepare(out)
                schedule.write_refusal(out, suite.name, error, OF_FILES)
        raise


def _kept(wanted: Suite, baseline: Path | None, tolerance: float | None, out: Path) -> baselines.StoredBaseline | None:
    """Return the requested baselines; a refusal is also reported in OUT, which a CI system collects."""
    if baseline is None:
        if tolerance is not None:
            raise InputError("--tolerance is of figures of a baseline; write --baseline DIR too")
        return None
    try:
        return replace(baselines.kept_for(wanted, baseline, say), tolerance=tolerance or 0.0)
    except InputError as error:
        schedule.write_refusal(out, wanted.name, error, OF_BASELINES)
        raise


def _save(groups: Sequence[Repeats], out: Path, folder: Path, page: Page) -> None:
    for name, text in baselines.save(groups, out):
        if text:
            write(folder / name, text, "--save")
        page.tell(f"kept: {folder / name}" if text else f"not kept, for the drill is no pass: {folder / name}")
    if any(len(group.runs) == 1 for group in groups):
        page.tell(f"{folder} has drills of one run: the phase of a timer alone can move its figures; write repeats: 5")


@ci.command("bmwg")
@click.argument("folder", type=_DIR)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The file to write.")
@click.option("--json", "as_json", is_flag=True, help="Write the exact figures as JSON, not Markdown.")
def ci_bmwg(folder: Path, out: Path, as_json: bool) -> None:
    """Write the runs below FOLDER as the report that the IETF's BMWG draft for AI training fabrics asks for.

    \b
    hpn ci run examples/ci/bmwg.yaml --out ci-out
    hpn ci bmwg ci-out --out bmwg.md
    """
    from hpn.results.bmwg.report import Entry, document, markdown  # numpy
    from hpn.results.run.reading import read

    runs = [Entry(os.path.relpath(each.path, folder), read(Path(each.path))) for each in run_folders(folder)]
    if not runs:
        raise InputError(f"no run below {folder}; make some: hpn ci run examples/ci/bmwg.yaml --out {folder}")
    write(out, json.dumps(document(runs), indent=2) + "\n" if as_json else markdown(runs))
    click.echo(out)
    tell_next("ci bmwg", folder=folder)
