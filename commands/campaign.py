"""Campaigns of random faults."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hpn.commands.completing import topologies
from hpn.commands.engine_option import engine_option, scheduler_option, virtual_time_option
from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.commands.page import Page, as_json_option, json_option, show, stall_limit_option
from hpn.commands.waiting import say
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.campaign import campaign as campaigns
from hpn.scenarios.campaign import expected
from hpn.scenarios.campaign import report as campaign_report
from hpn.scenarios.campaign.journal import Done
from hpn.scenarios.campaign.journal import load as load_campaign
from hpn.scenarios.campaign.labs import PooledLabs
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.vm.engines import asked_for


@click.group()
def campaign() -> None:
    """Random sequences of faults, invariants checked after each; what breaks becomes the smallest drill file."""


@campaign.command("run")
@click.argument("topology", default="tiny", shell_complete=topologies)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help="Draws the sequences.")
@click.option(
    "--sequences", type=click.IntRange(1, 10**6), default=200, show_default=True, help="How many, over all runs."
)
@click.option("--jobs", type=click.IntRange(1, 256), help="Labs side by side; default: one per core.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("campaign-out"), show_default=True
)
@engine_option("Where labs run.", lambda spec: spec.campaigns)
@virtual_time_option
@scheduler_option
@click.option(
    "--long-faults",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="So many of the faults last 4 to 15 s, past LACP's and BGP's timers; default: 25 in virtual time, else 0.",
)
@stall_limit_option
@json_option
def campaign_run(
    topology: str,
    seed: int,
    sequences: int,
    jobs: int | None,
    out: Path,
    engine: str,
    virtual_time: bool,
    scheduler: str | None,
    long_faults: float | None,
    as_json: bool,
) -> int:
    """Run a campaign, or go on with the one in the --out folder, and shrink what it breaks."""
    page, where = Page(as_json), asked_for(engine, virtual_time).name
    share = None if long_faults is None else long_faults / 100
    plan = campaigns.plan_for(out, seed, load_fabric(topology).spec, where, share)
    left = expected.left_of(out, sequences)
    with pool_for(out, jobs, scheduler) as pool:
        ended = expected.telling(left, pool.width, say)
        say("" if scheduler is not None else expected.line_of(plan, left, pool.width))
        for entry in campaigns.carry_out(out, plan, sequences, PooledLabs(pool, plan.engine)):
            page.tell(campaign_report.line(entry))
            ended(entry)
    kept, done = load_campaign(out)
    page.show(*campaign_report.tables(kept, done))
    _leave_page(out, page)
    page.end(lambda: campaign_report.overview(kept, done))
    file = _smallest(out, done)
    tell_next("campaign run", quiet=as_json, drill=file, folder=None if file else out)
    return campaign_report.exit_code(done)


def _leave_page(out: Path, page: Page) -> None:
    from hpn.scenarios.campaign.page import campaign_page  # Jinja, which is loaded after the sequences

    place = out / "report.html"
    write(place, campaign_page(out, place))
    page.tell(f"page over all sequences: {place}")


@campaign.command("show")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@as_json_option
def campaign_show(folder: Path, as_json: bool) -> None:
    """Show what a campaign has found so far, also while it runs."""
    if as_json:
        click.echo(json.dumps(campaign_report.overview(*load_campaign(folder)), indent=2))
        return
    kept, done = load_campaign(folder)
    show(*campaign_report.tables(kept, done))
    tell_next("campaign show", drill=_smallest(folder, done), folder=folder)


def _smallest(folder: Path, done: Done) -> Path | None:
    """Return the drill file of the first violation that was reproduced."""
    return next((folder / found.file for found in done.shrunk if found.file), None)
