"""Runs of drills, made and shown: one by one here, by a pool, and as a job in a pool's worker or a guest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import JsonValue

from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.commands.overall_page import leave_page
from hpn.commands.page import Page, starting, terminal
from hpn.commands.settings import as_run
from hpn.commands.waiting import waiting
from hpn.results.export.ci import OF_FILES, refused_junit, refused_summary
from hpn.results.export.junit import Unmade, judged, junit_xml
from hpn.results.export.markdown import drills_summary
from hpn.results.judge.repeats.spread import compare, spread_table
from hpn.results.judge.verdict import Outcome, worst_exit_code
from hpn.results.run.claim import Claim
from hpn.results.run.folder import RunFolder, run_document
from hpn.results.text.live import LiveView
from hpn.results.text.terminal import summary
from hpn.scenarios.batch.pool import drills as pool_drills
from hpn.scenarios.batch.pool.drills import RequestedRun, run_all
from hpn.scenarios.batch.pool.task import Pool
from hpn.scenarios.drill.describe import put_elsewhere
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run import calibrate, engines, repeats, session
from hpn.scenarios.run.run_order import Batch, Order
from hpn.testbed.errors import HpnError, InputError, MachineError, NoisyError
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.vm.engines import EngineSpec

Ran = tuple[Order, RunFolder | HpnError]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of ``hpn drill run``, as given."""

    names: tuple[str, ...]
    everything: bool
    topology: FabricSpec | None
    profile: str | None
    engine: str
    virtual_time: bool
    slow: int | None
    repeat: int
    phase: int
    tries: int
    jobs: int
    scheduler: str | None
    junit: Path | None
    summary: Path | None
    raise_neighbour_limit: bool
    keep_records: bool
    as_json: bool
    out: Path | None

    @property
    def width(self) -> int | None:
        """Runs side by side; None: as many as the scheduler has workers."""
        return self.jobs if self.scheduler is None else None

    def batch(self, drills: list[Drill], place: Path) -> Batch:
        """Return the runs to make in ``place``."""
        return Batch(
            drills=drills,
            repeat=self.repeat,
            out=place,
            command=as_run(),
            slow=self.slow,
            tries=self.tries,
            keep_records=self.keep_records,
            first=self.phase,
            raise_neighbours=self.raise_neighbour_limit,
        )


@contextmanager
def refusals_told(junit: Path | None, job_page: Path | None) -> Iterator[None]:
    """Write the requested reports also for mistakes in files, as a CI system collects them."""
    try:
        yield
    except InputError as error:
        if junit is not None:
            write(junit, refused_junit("hpn", error.problems, OF_FILES), "--junit")
        if job_page is not None:
            write(job_page, refused_summary("hpn drill run", error.problems, OF_FILES), "--summary")
        raise


def one_by_one(batch: Batch, spec: EngineSpec, claim: Claim, page: Page) -> Iterator[Ran]:
    """Yield every run, made here with a live view, until their common folder is gone."""
    _check(batch.drills, spec)
    left = waiting(_wanted(batch, spec), 1)
    for order, run in engines.run_batch(batch, spec, lambda title: LiveView(page.console, title), page.tell):
        yield order, _with_report(run)
        left.ended(order.out.name)
        if claim.lost() is not None:
            return


def pooled(batch: Batch, spec: EngineSpec, pool: Pool, page: Page) -> Iterator[Ran]:
    """Yield every run, made by a pool, in the order of completion. InputError for a folder with other content."""
    wanted = _wanted(batch, spec)
    left = waiting(wanted, pool.width, elsewhere=pool.far)

    def begins(name: str, where: str) -> None:
        page.tell(starting(name, where))
        left.begun(name)

    for made in run_all(pool, wanted, begins):
        if isinstance(made.run, HpnError) and not isinstance(made.run, MachineError | NoisyError):
            raise made.run
        yield wanted[made.name].order, made.run
        left.ended(made.name)


def _wanted(batch: Batch, spec: EngineSpec) -> dict[str, RequestedRun]:
    return {order.out.name: RequestedRun(order, spec, batch.tries) for order in batch.orders()}


def make(
    batch: Batch, runs_made: Iterable[Ran], page: Page, junit: Path | None = None, job_page: Path | None = None
) -> int:
    """Show every run when it is made, then write the reports; return the exit code."""
    runs: list[RunFolder] = []
    refused: HpnError | None = None
    unmade: list[Unmade] = []
    try:
        for order, run in runs_made:
            if isinstance(run, HpnError):
                refused = run if refused is None or isinstance(run, MachineError) else refused
                unmade.append(Unmade(order.drill.name, order.repeat, str(run), isinstance(run, NoisyError)))
                click.echo(f"hpn: {order.drill.name}: {run}", err=True)
                continue
            runs.append(run)
            _show(run, order.drill, run.path, page)
    finally:
        runs = _in_order(batch, runs)
        repeated = repeats.judge(batch, runs)
        found = [judged(run) for run in runs] if junit is not None or job_page is not None else []
        if junit is not None:
            write(junit, junit_xml(found, repeated, unmade), "--junit")
        if job_page is not None:
            write(job_page, drills_summary(found, repeated, unmade), "--summary")
    if batch.repeat > 1:
        page.show(*(spread_table(compare([run.metrics() for run in found])) for found in batch.by_drill(runs)))
        page.show(*repeats.summaries(repeated))
    if len(runs) > 1:
        leave_page(batch.out, page)
    page.end(lambda: {"runs": [run_document(run) for run in runs], "repeats": repeated})
    _tell_next(batch, runs, page)
    code = worst_exit_code([each.verdict for each in repeated] or [run.verdict() for run in runs])
    return refused.exit_code if refused is not None and code != Outcome.FAIL.exit_code else code


def _tell_next(batch: Batch, runs: Sequence[RunFolder], page: Page) -> None:
    """Suggest the page of a single run, the comparison of repeats, or the list of all runs."""
    if len(runs) == 1:
        tell_next("drill run", quiet=page.as_json, run=runs[0].path)
    elif runs:
        repeats_in, folder = (batch.out, None) if len(batch.drills) == 1 else (None, batch.out)
        tell_next("drill run", quiet=page.as_json, repeats=repeats_in, folder=folder)


def _in_order(batch: Batch, runs: Iterable[RunFolder]) -> list[RunFolder]:
    """Return the runs in the requested order, whichever ended first."""
    place = {order.out.name: at for at, order in enumerate(batch.orders())}
    return sorted(runs, key=lambda run: place[run.path.name])


def _show(run: RunFolder, drill: Drill, home: Path, page: Page) -> None:
    asked = run.drill() if (run.path / "drill.json").is_file() else None
    page.console.print(summary(run.manifest(), run.metrics(), run.verdict(), asked))
    for line in put_elsewhere(drill):
        page.console.print(f"  {line}", soft_wrap=True)
    page.console.print(f"run folder: {home}\n", soft_wrap=True)


def pool_job(body: JsonValue, spec: EngineSpec) -> int:
    """Do the job of a pool: run, and print like, ``hpn drill run`` for one run, in the current folder."""
    asked, page = pool_drills.body_from(body), Page(as_json=False)
    order = asked.order()
    _check([order.drill], spec)
    tried = engines.run_orders([order], asked.tries, spec, lambda title: LiveView(page.console, title), page.tell)
    for _, run in tried:
        if isinstance(run, HpnError):
            click.echo(f"hpn: {order.drill.name}: {run}", err=True)
            return run.exit_code
        _with_report(run)
        _show(run, order.drill, Path(asked.home), page)
        return run.verdict().exit_code
    raise MachineError("the run was left out")


def run_job(body: JsonValue, spec: EngineSpec) -> int:
    """Do the job of a guest: print progress as lines; the host reads the run folder and prints it."""
    order = engines.body_from(body).order(spec)
    with LiveView(terminal(), order.title) as listen:
        return session.run(order, listen).verdict().exit_code


def _check(drills: Iterable[Drill], spec: EngineSpec) -> None:
    """Raise MachineError for a drill beyond the calibrated capacity of this machine."""
    if not spec.own_kernel:
        budget = calibrate.load()
        for each in drills:
            calibrate.check(each, budget)


def _with_report(run: RunFolder | MachineError | NoisyError) -> RunFolder | MachineError | NoisyError:
    """Return the run after writing its page into its folder."""
    if isinstance(run, RunFolder):
        from hpn.results.page.folder import (
            write_report,  # Jinja and numpy, which a list of drills need not load
        )

        write_report(run.path)
    return run
