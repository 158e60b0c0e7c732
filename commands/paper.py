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
from hpn.commands.waiting import say, still_runs, waiting
from hpn.results.run.claim import RUNS
from hpn.results.run.folder import prepare
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.paper import answers, reproduce
from hpn.scenarios.paper.claim import DRAWS
from hpn.scenarios.paper.interval import LEAST_DRAWS
from hpn.scenarios.paper.kept import Kept
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
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=RUNS / "reproduce",
    show_default=True,
    help="Folder for run folders and tables; runs of this version that it has are not made again.",
)
@click.option(
    "--draws",
    type=click.IntRange(LEAST_DRAWS, 64),
    default=DRAWS,
    show_default=True,
    help="Draws of hashes and placements of each comparison.",
)
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
    out: Path,
    draws: int,
    jobs: int | None,
    markdown: Path | None,
    scheduler: str | None,
    as_json: bool,
) -> int:
    """Hold the HPN paper's claims, or just CLAIMS, against runs (all of them: some 50 minutes, the first time).

    A second call makes only the runs that are missing, as after Ctrl-C. Each claim is also held against networks
    without what it is about, where it must not hold. Exit code 1: a claim differs and nobody knew, holds without its
    feature too, or a drill failed; 4: one could not be judged; else 0.
    """
    chosen = reproduce.choose(claims)
    where = engine or reproduce.default_engine()
    page = Page(as_json)
    if markdown is not None:
        answers.within(markdown.read_text(), (), "")  # a page without a place is refused before any run
    with pool_for(out, jobs, scheduler, still_runs) as pool:
        prepare(out)
        wanted = reproduce.wanted_of(chosen, where, out, as_run(), draws)
        on_file = Kept(out, wanted).runs
        if on_file:
            page.tell(f"{len(on_file)} of {len(wanted)} runs are on file in {out}")
        left = waiting(
            {name: each for name, each in wanted.items() if name not in on_file}, pool.width, elsewhere=pool.far
        )
        try:
            rows = reproduce.reproduce(chosen, wanted, where, out, page.tell, pool, draws, left.ended)
        except KeyboardInterrupt:
            say(f"{len(Kept(out, wanted).runs)} of {len(wanted)} runs are on file in {out}; the same command goes on")
            raise
    page.show(answers.claims_table(rows))
    page.tell(f"written to {out / reproduce.MARKDOWN} and {reproduce.JSON}")
    if markdown is not None:
        replace_text(markdown, answers.within(markdown.read_text(), rows, _made(where)))
    page.end(lambda: answers.document(rows, where, draws))
    tell_next("reproduce", quiet=as_json, folder=out)
    return answers.exit_code(rows)
