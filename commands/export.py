"""A run folder in third-party formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from hpn.commands.completing import runs
from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.results.export.formats import FORMATS, PCAPNG
from hpn.testbed.errors import InputError


def _help() -> Iterator[str]:
    yield "Write a RUN folder's timeline for Perfetto, or its captured control frames for Wireshark."
    yield ""
    yield "\b"
    for form in FORMATS.values():
        first, *more = form.about
        yield f"x{form.ending:<8} {first}"
        yield from (f"{'':<9} {line}" for line in more)


@click.command(help="\n".join(_help()))
@click.argument("run", type=click.Path(file_okay=False, path_type=Path), shell_complete=runs)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The file to write.")
@click.option("--format", "name", type=click.Choice(list(FORMATS)), help="Default: as --out ends.")
def export(run: Path, out: Path, name: str | None) -> None:
    """Write a run in the format of another program."""
    from hpn.results.run.reading import read  # numpy

    name = name or next((form.name for form in FORMATS.values() if form.ending == out.suffix), None)
    if name is None:
        endings = " or ".join(form.ending for form in FORMATS.values())
        raise InputError(f"{out} does not say what to write; end it in {endings}, or say --format")
    content, gaps = FORMATS[name].content(read(run))
    write(out, content)
    for gap in gaps:
        click.echo(f"missing: {gap}", err=True)
    click.echo(out)
    tell_next("export", capture=out if name == PCAPNG.name else None)
