"""A run folder as something that people read."""

from __future__ import annotations

from pathlib import Path

import click

from commands.completing import runs as run_folders
from commands.followers import tell_next
from commands.outfile import write
from testbed.errors import InputError

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, shell_complete=run_folders, type=_FOLDER)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Where to, of one run.")
def report(runs: tuple[Path, ...], out: Path | None) -> None:
    """Write a run folder's page: one HTML file, report.html in the folder, that needs nothing else.

    What the drill shows, whether it did, every expectation with its limit and interval, and for each fault what
    happened when. To be attached to a design review or a paper, and opened anywhere.
    """
    from results.page.folder import NAME, report_of  # Jinja and numpy, which no other command waits for

    if out is not None and len(runs) > 1:
        raise InputError(f"--out names one file and there are {len(runs)} runs; leave it out")
    for path in runs:
        place = path / NAME if out is None else out
        text = report_of(path)
        write(place, text)
        click.echo(place)
    tell_next("report", runs=runs if len(runs) > 1 else None)
