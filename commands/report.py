"""Report of a folder that hpn has written, for people."""

from __future__ import annotations

from pathlib import Path

import click

from hpn.commands.completing import runs as run_folders
from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.results.text.printable import printable
from hpn.testbed.errors import InputError

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, shell_complete=run_folders, type=_FOLDER)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Where to, of one folder.")
@click.option("--each", is_flag=True, help="Write the pages of the runs below it too, where they have none.")
def report(folders: tuple[Path, ...], out: Path | None, each: bool) -> None:
    """Write a folder's page, report.html in the folder: one HTML file that asks no network for anything.

    A page over many runs links to the pages of its runs, so send the folder. Of a run: what the drill shows, whether
    it did, every expectation with its limit and interval, and for each fault what happened when. Of repeats, a suite,
    an audit or a campaign: what they come to and what failed, a line for each run, and each figure over all runs with
    its limit. Of any folder above runs: a list of them, the newest first.

    \b
    hpn report runs/20261122-180000/link-down
    hpn report ci-out
    hpn report runs --each
    """
    from hpn.results.page.folder import NAME, write_missing  # Jinja and numpy, which other commands need not load
    from hpn.scenarios.campaign.page import is_campaign  # likewise

    if out is not None and len(folders) > 1:
        raise InputError(f"--out names one file and there are {len(folders)} folders; leave it out")
    for path in folders:
        place = path / NAME if out is None else out
        if each and not is_campaign(path):
            for made in write_missing(path):
                click.echo(printable(str(made)), err=True)
        write(place, _page(path, place))
        click.echo(place)
    of_runs = len(folders) > 1 and not any(map(is_campaign, folders))
    tell_next("report", runs=folders if of_runs else None)


def _page(path: Path, place: Path) -> str:
    """Return the page of a campaign, an audit, a run, or all runs below a folder."""
    from hpn.results.audit.model import ANSWER, is_audit, load_answer
    from hpn.results.audit.page import audit_page
    from hpn.results.page.folder import report_of
    from hpn.scenarios.campaign.page import campaign_page, is_campaign

    if is_campaign(path):
        return campaign_page(path, place)
    if is_audit(path):
        return audit_page(load_answer(path / ANSWER), path, place)
    return report_of(path, place)
