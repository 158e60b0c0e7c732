"""Citation of hpn, and of its runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import metadata
from pathlib import Path

import click

from hpn.commands.completing import runs as run_folders
from hpn.commands.page import as_json_option
from hpn.results.export.citation import bibtex, citation, csl, made_by
from hpn.results.run.folder import load

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1, type=_FOLDER, shell_complete=run_folders)
@as_json_option
def cite(runs: tuple[Path, ...], as_json: bool) -> None:
    """Print a BibTeX entry for hpn; with RUN folders, or folders that hold some, it notes what made them.

    The note has, for each experiment, version and commit of hpn, engine, kernel, the digests of drill and experiment,
    the keys that differ and the phases. --json prints CSL-JSON, for Zotero, pandoc and others.
    """
    package = metadata("hpn")  # an installed wheel has no CITATION.cff
    told = "License-Expression" in package  # not by a setuptools before 77
    licence = package["License-Expression"] if told else ""
    made = [made_by(load(run)) for run in _runs(runs)]
    cited = citation(package["Summary"], package["Version"], licence, made)
    click.echo(json.dumps([csl(cited)], indent=2) if as_json else bibtex(cited))


def _runs(named: Sequence[Path]) -> Sequence[Path]:
    from hpn.results.comparison.run_arguments import gathered  # numpy

    return gathered(named) if named else ()
