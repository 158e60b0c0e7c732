"""Audit of a fabric: every failure, one at a time.

Changes when the command takes another option. ``scenarios.audit`` has the work.
"""

from __future__ import annotations

from pathlib import Path

import click

from hpn.commands.completing import topologies
from hpn.commands.engine_option import engine_option, scheduler_option
from hpn.commands.outfile import write
from hpn.commands.page import Page, json_option, stall_limit_option, starting
from hpn.commands.waiting import still_runs, waiting
from hpn.results.audit import text
from hpn.results.audit.model import ANSWER, Answer, answer_json
from hpn.scenarios.audit import audit as audits
from hpn.scenarios.audit.answer import answer_of
from hpn.scenarios.audit.failures import KINDS
from hpn.scenarios.audit.promises import check_used, default_promises, load_promises
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.testbed.errors import HpnError, InputError
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.vm.engines import EngineSpec, asked_for

_VIRTUAL_TIME = "uml-virtual-time"


@click.command()
@click.argument("fabric", shell_complete=topologies)
@click.option("--promises", type=click.Path(dir_okay=False, path_type=Path), help="What must hold; default: hpn's own.")
@click.option("--kinds", default=",".join(KINDS), show_default=True, help="Kinds of failures, with commas.")
@click.option("--pairs", type=click.IntRange(0, 100_000), default=0, show_default=True, help="Most pairs to try.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Runs side by side; default: one per core.")
@engine_option("Where.", default=_VIRTUAL_TIME)
@stall_limit_option
@scheduler_option
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("audit-out"), show_default=True)
@json_option
def audit(
    fabric: str,
    promises: Path | None,
    kinds: str,
    pairs: int,
    jobs: int | None,
    engine: str,
    scheduler: str | None,
    out: Path,
    as_json: bool,
) -> int:
    """Try every failure of a fabric, one at a time, and say what each costs, worst first."""
    page, spec, wanted_kinds = Page(as_json), asked_for(engine, False), _kinds(kinds)
    asked = default_promises() if promises is None else load_promises(promises)
    check_used(asked, wanted_kinds)
    planned = audits.plan(load_topology(fabric), wanted_kinds, pairs, asked, out)
    answer = _carried_out(planned, spec, jobs, scheduler, page)
    page.show(text.audit_table(answer))
    for line in text.lines(answer):
        page.tell(line)
    page.end(lambda: answer)
    return answer.exit_code


def _kinds(given: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in given.split(",") if word.strip())
    for word in words:
        if word not in KINDS:
            raise InputError(f"--kinds {word}: no such kind; write some of {', '.join(KINDS)}")
    return words


def _carried_out(
    planned: audits.Audit, spec: EngineSpec, jobs: int | None, scheduler: str | None, page: Page
) -> Answer:
    """Make the runs that are left, and return the answer, which is also written after an interruption."""
    refused: dict[str, HpnError] = {}
    audits.check_place(planned.out)
    with pool_for(planned.out, jobs, scheduler, still_runs) as pool:
        left = audits.left_of(planned)
        audits.write(planned, left, spec.name)
        wanted = audits.wanted_of(planned, left, spec)
        follower = waiting(wanted, pool.width, elsewhere=pool.far)

        def begins(name: str, where: str) -> None:
            page.tell(starting(name, where))
            follower.begun(name)

        try:
            for made in audits.make(pool, wanted, begins):
                if isinstance(made.run, HpnError):
                    refused[made.name] = made.run
                    click.echo(f"hpn: {made.name}: {made.run}", err=True)
                follower.ended(made.name)
        finally:
            answer = answer_of(planned, spec.name, refused)
            write(planned.out / ANSWER, answer_json(answer))
    return answer
