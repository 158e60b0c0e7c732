"""Exploration of a drill: a second fault at every moment of its convergence and return.

Changes when the command takes another option. ``scenarios.explore`` plans and judges.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from pydantic_core import to_json

from hpn.commands.completing import drill_names
from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.commands.page import Page, json_option, profile_option, starting, topology_option
from hpn.commands.runs_options import runs_options
from hpn.commands.waiting import say, still_runs, waiting
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.batch.pool.task import Pool
from hpn.scenarios.drill import catalogue
from hpn.scenarios.explore import exploration as explorations
from hpn.scenarios.explore import report
from hpn.scenarios.explore.answer import Answer, Found, answer_of, judged_of
from hpn.scenarios.explore.exploration import Exploration, Plan
from hpn.scenarios.explore.seconds import SECONDS
from hpn.scenarios.explore.smallest import found_of, groups_of
from hpn.testbed.errors import HpnError, InputError
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.vm.engines import asked_for

ANSWER = "answer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploreOptions:
    """Options of ``hpn explore``, as given."""

    drill: str
    topology: FabricSpec | None
    profile: str | None
    seconds: str
    most: int
    jobs: int | None
    engine: str
    scheduler: str | None
    out: Path
    first: bool
    only_list: bool
    as_json: bool

    @property
    def wanted(self) -> tuple[str, ...]:
        """Names of the second faults. InputError for an unknown one."""
        names = tuple(dict.fromkeys(word.strip() for word in self.seconds.split(",") if word.strip()))
        for name in names:
            if name not in SECONDS:
                raise InputError(f"--seconds {name}: no such second fault; {did_you_mean(name, SECONDS, 'they are')}")
        if not names:
            raise InputError(f"--seconds names nothing; write some of {', '.join(SECONDS)}")
        return names


@click.command()
@click.argument("drill", metavar="DRILL", shell_complete=drill_names)
@click.option(
    "--seconds",
    metavar="NAME,...",
    default=",".join(SECONDS),
    show_default=True,
    help="Second faults to try.",
)
@click.option(
    "--most",
    type=click.IntRange(1, 100_000),
    default=200,
    show_default=True,
    help="At most so many places, spread evenly over events and timers.",
)
@click.option("--first", is_flag=True, help="Run no more places once one breaks an invariant.")
@click.option("--list", "only_list", is_flag=True, help="Make the base run, print the places, and run none.")
@topology_option
@profile_option
@runs_options("explore-out", lambda spec: spec.virtual_time)
@json_option
def explore(**given: Any) -> int:
    """Try a second fault just before and after every event of DRILL's failover and return.

    The base drill runs once in virtual time. What breaks an invariant is made small, and written as a drill to
    OUT/found. Exit code 1: something broke. 4: a run was in doubt, or was not the base run before its second fault.

    \b
    hpn explore link-down --list
    hpn explore link-down --seconds other-port,early-return --most 50
    """
    options = ExploreOptions(**given)
    page, spec = Page(options.as_json), asked_for(options.engine, False)
    own = catalogue.load(options.drill, options.topology, options.profile)
    document = catalogue.document_of(options.drill, own)
    explored = explorations.exploration_of(document, own, options.wanted, options.most, options.out, spec)
    with pool_for(options.out, options.jobs, options.scheduler, still_runs) as pool:
        explorations.claim(explored)
        explorations.run_base(explored, pool, lambda name, where: page.tell(starting(name, where)))
        plan = explorations.plan_of(explored)
        answer = _answer(options, explored, plan, pool, page)
    page.show(report.rows_table(answer))
    for line in report.lines(answer):
        page.tell(line)
    page.end(lambda: answer)
    smallest = next((options.out / each.file for each in answer.found), None)
    tell_next("explore", quiet=options.as_json, drill=smallest)
    return 0 if options.only_list else answer.exit_code


def _answer(options: ExploreOptions, explored: Exploration, plan: Plan, pool: Pool, page: Page) -> Answer:
    """Make the runs and the small drills; the answer is written after an interruption too."""
    refused: dict[str, HpnError] = {}
    found: list[Found] = []
    try:
        if not options.only_list:
            _make(explored, plan, pool, page, refused, first=options.first)
            groups = groups_of(plan, answer_of(explored, plan, refused).rows)
            for each in found_of(explored, groups, pool, lambda name, where: page.tell(starting(name, where))):
                found.append(each)
                page.tell(report.found_line(each))
    finally:
        answer = answer_of(explored, plan, refused, found)
        write(explored.out / ANSWER, to_json(answer, indent=1).decode())
    return answer


def _make(
    explored: Exploration, plan: Plan, pool: Pool, page: Page, refused: dict[str, HpnError], *, first: bool
) -> None:
    """Make the runs that are left; with ``first`` until one breaks an invariant."""
    variants = [trial.variant for trial in plan.trials]
    left = [each for each in variants if not explored.kept.is_made(each)]
    if kept := len(variants) - len(left):
        say(f"{explored.out} has {kept:,} of {len(variants):,} runs already")
    follower = waiting(explored.kept.requests(left, explored.spec), pool.width, elsewhere=pool.far)

    def begins(name: str, where: str) -> None:
        page.tell(starting(name, where))
        follower.begun(name)

    by_name = {trial.variant.name: trial for trial in plan.trials}
    with closing(explorations.make(explored, variants, pool, begins)) as runs:
        for made in runs:
            if isinstance(made.run, HpnError):
                refused[made.name] = made.run
                click.echo(f"hpn: {made.name}: {made.run}", err=True)
            elif broken := judged_of(explored, by_name[made.name], plan.course).broken:
                page.tell(f"{made.name} breaks {', '.join(sorted(broken))}")
                if first:
                    return
            follower.ended(made.name)
