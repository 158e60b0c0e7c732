"""Runs of an audit: made by a pool, with estimates, and listed without being made.

Changes when an audit reports something else while it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hpn.commands.outfile import write
from hpn.commands.page import Page, starting
from hpn.commands.waiting import say, still_runs, waiting
from hpn.results.audit.model import ANSWER, Answer, answer_json
from hpn.results.page.runs import PAGE
from hpn.results.text.tables import table
from hpn.scenarios.audit import audit as audits
from hpn.scenarios.audit.answer import answer_of
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.run import estimate, wall_cost
from hpn.testbed.errors import HpnError
from hpn.testbed.vm.engines import EngineSpec


def carried_out(planned: audits.Audit, spec: EngineSpec, jobs: int | None, scheduler: str | None, page: Page) -> Answer:
    """Make the runs that are left and return the answer; it and its page are written after an interruption too."""
    refused: dict[str, HpnError] = {}
    audits.check_place(planned.out)
    with pool_for(planned.out, jobs, scheduler, still_runs) as pool:
        left = audits.left_of(planned)
        audits.write(planned, left, spec.name)
        if kept := len(planned.failures) - len(left):
            say(f"{planned.out} has {kept:,} of {len(planned.failures):,} failures already")
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
            _keep(planned.out, answer)
    return answer


def report_place(out: Path) -> Path:
    """Return the place of an audit's page."""
    return out / PAGE


def _keep(out: Path, answer: Answer) -> None:
    """Write the answer and its page."""
    from hpn.results.audit.page import audit_page  # Jinja, which is loaded after the runs

    write(out / ANSWER, answer_json(answer))
    place = report_place(out)
    write(place, audit_page(answer, out, place))


def listed(found: Sequence[audits.Audit], spec: EngineSpec, jobs: int | None, page: Page) -> None:
    """Print the failures that would be tried, those left out, and how long the runs that are left take."""
    for planned in found:
        rows = [(each.failure.kind, each.failure.words, each.name) for each in planned.failures]
        page.show(table(f"failures of {planned.fabric.spec.name}", ("kind", "failure", "drill"), rows, keys=2))
        for failure, why in planned.left_out:
            page.tell(f"left out: {failure.key}: {why}")
    left = {id(planned): audits.left_of(planned) for planned in found}
    orders = {
        f"{at} {name}": (run.order, run.spec)
        for at, planned in enumerate(found)
        for name, run in audits.wanted_of(planned, left[id(planned)], spec).items()
    }
    asked = [*estimate.asked_of(orders).values()]
    told = estimate.told(asked, wall_cost.load(), jobs or estimate.at_once(spec, 256))
    page.tell(told or f"{len(orders):,} runs take less than a minute")
    page.end(lambda: _document(found, len(orders), told))


def _document(found: Sequence[audits.Audit], left: int, told: str) -> dict[str, object]:
    failures = [
        {"fabric": planned.fabric.spec.name, "key": each.failure.key, "drill": each.name}
        for planned in found
        for each in planned.failures
    ]
    return {"failures": failures, "left": left, "estimate": told}
