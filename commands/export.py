"""A run folder in third-party formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from hpn.commands.completing import runs
from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.testbed.errors import InputError

_TRACE, _CONTROL = "perfetto", "pcapng"
_ENDINGS = {".json": _TRACE, ".pcapng": _CONTROL}


@click.command()
@click.argument("run", type=click.Path(file_okay=False, path_type=Path), shell_complete=runs)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The file to write.")
@click.option("--format", "form", type=click.Choice([_TRACE, _CONTROL]), help="Default: as --out ends.")
def export(run: Path, out: Path, form: str | None) -> None:
    """Write a RUN folder's timeline for Perfetto, or its captured control frames for Wireshark.

    \b
    x.json    trace events for ui.perfetto.dev and chrome://tracing: faults, what LAG, LACP, BGP and
              path control did, outages, paths, iterations of ranks, goodput, queues, load of the machine
    x.pcapng  LACP, ARP, BGP and the like around each fault, the faults as comments of packets; of a
              drill that captures (docs/drills.md)
    """
    form = form or _ENDINGS.get(out.suffix)
    if form is None:
        raise InputError(f"{out} does not say what to write; end it in .json or .pcapng, or say --format")
    content, gaps = _MAKERS[form](run)
    write(out, content)
    for gap in gaps:
        click.echo(f"missing: {gap}", err=True)
    click.echo(out)
    tell_next("export", capture=out if form == _CONTROL else None)


def _trace(path: Path) -> tuple[bytes, Sequence[str]]:
    from hpn.results.export.timeline import trace_of  # numpy
    from hpn.results.run.reading import read

    run = read(path)
    return trace_of(run), [f"{gap.part}: {gap.why}" for gap in run.gaps]


def _control(path: Path) -> tuple[bytes, Sequence[str]]:
    from hpn.results.export.control import control_frames  # numpy
    from hpn.results.run.reading import read

    found = control_frames(read(path))
    return found.file, found.gaps


_MAKERS: dict[str, Callable[[Path], tuple[bytes, Sequence[str]]]] = {_TRACE: _trace, _CONTROL: _control}
