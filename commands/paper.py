"""Claims of the HPN paper."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hpn.commands.completing import claims as claim_keys
from hpn.commands.engine_option import OneOf, scheduler_option
from hpn.commands.followers import tell_next
from hpn.commands.page import Page, json_option
from hpn.commands.settings import as_run
from hpn.commands.waiting import still_runs, waiting
from hpn.results.run.claim import place_for
from hpn.results.run.folder import prepare
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.paper import answers, reproduce
from hpn.scenarios.run.origin import origin
from hpn.testbed.files.replacing import replace_text
from hpn.testbed.vm.engines import ENGINES


def _made(engine: str) -> str:
    """Return when and where the runs were made, as a line of Markdown."""
    of, today = origin(), time.strftime("%Y-%m-%d", time.gmtime())
    machine = f"{of.machine['cpus']} CPUs, Linux {str(of.machine['kernel']).split('-')[0]}"
    return f"{today}, commit {of.commit[:12] or 'unknown'}, engine {engine}, {machine}."


@click.command("reproduce")
@click.argument("claims", nargs=-1, shell_complete=claim_keys)
@click.option("--engine", type=OneOf(lambda: tuple(ENGINES)), help="Default: virtual time where it can run, else host.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for run folders and tables.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Runs side by side; default: one per core.")
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Page that gets the table of the claims, between its lines <!-- hpn reproduce: begin --> and end.",
)
@scheduler_option
@json_option
def reproduce_(
    claims: tuple[str, ...],
    engine: str | None,
    out: Path | None,
    jobs: int | None,
    markdown: Path | None,
    scheduler: str | None,
    as_json: bool,
) -> int:
    """Hold the HPN paper's claims, or just CLAIMS, against runs made now (all of them: some 25 minutes).

    Each is also held against networks without what it is about, where it must not hold. Exit code 1: a claim differs
    and nobody knew, holds without its feature too, or a drill failed; 4: one could not be judged; else 0.
    """
    chosen = reproduce.choose(claims)
    where = engine or reproduce.default_engine()
    page = Page(as_json)
    if markdown is not None:
        answers.within(markdown.read_text(), (), "")  # a page without a place is refused before any run
    with place_for(out) as place, pool_for(place, jobs, scheduler, still_runs) as pool:
        prepare(place)
        wanted = reproduce.wanted_of(chosen, where, place, as_run())
        left = waiting(wanted, pool.width, elsewhere=pool.far)
        rows = reproduce.reproduce(chosen, wanted, where, place, page.tell, pool, left.ended)
    page.show(answers.claims_table(rows))
    page.tell(f"written to {place / reproduce.MARKDOWN} and {reproduce.JSON}")
    if markdown is not None:
        replace_text(markdown, answers.within(markdown.read_text(), rows, _made(where)))
    page.end(lambda: answers.document(rows, where))
    tell_next("reproduce", quiet=as_json, folder=place)
    return answers.exit_code(rows)
