"""Runs as tables, for statistics programs and papers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from commands.outfile import make_folder, write
from results.tables.collect import Collected, Rows, collected, found
from results.tables.csvfile import csv_of
from results.tables.registry import TABLES
from results.tables.table import Table
from results.text.printable import printable
from testbed.errors import HpnError, InputError, MachineError

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("folders", metavar="RUN_OR_PARENT...", nargs=-1, required=True, type=_FOLDER)
@click.option("--csv", "csv_folder", type=_FOLDER, help="Write a CSV file for each table into this folder.")
def export(folders: tuple[Path, ...], csv_folder: Path | None) -> None:
    """Write tables of run folders for pandas, R or a spreadsheet: runs, figures, expectations and flows.

    A folder that is no run folder is searched for them. docs/results.md explains each column.

    \b
    hpn results export runs --csv tables
    """
    if csv_folder is None:
        raise InputError("nothing says where to write; give --csv DIR")
    made = collected(found(folders))
    if made.runs:
        _write_all(made, csv_folder, "--csv", "csv", lambda table, rows: csv_of(table, rows).encode())
    _tell(made.problems)


def _write_all(
    made: Collected, folder: Path, option: str, ending: str, content_of: Callable[[Table, Rows], bytes]
) -> None:
    """Every file is made before the first is written."""
    contents = {f"{name}.{ending}": content_of(table, made.rows[name]) for name, table in TABLES.items()}
    make_folder(folder, option)
    for name, content in contents.items():
        write(folder / name, content, option)
        click.echo(printable(str(folder / name)))


def _tell(problems: tuple[HpnError, ...]) -> None:
    """Name what was left out, one line each; the other runs have been exported."""
    if not problems:
        return
    lines = [f"left out: {printable(str(problem))}" for problem in problems]
    if any(isinstance(problem, InputError) for problem in problems):
        raise InputError(lines)
    raise MachineError("\n".join(lines))
