"""Runs as tables, for statistics programs and papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from hpn.commands.completing import places
from hpn.commands.outfile import make_folder, write
from hpn.results.tables.collect import Collected, Rows, collected, found
from hpn.results.tables.csvfile import csv_of
from hpn.results.tables.parquet import parquet_of
from hpn.results.tables.table import Table
from hpn.results.text.printable import printable
from hpn.testbed.errors import HpnError, InputError, MachineError

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("folders", metavar="RUN_OR_PARENT...", nargs=-1, required=True, type=_FOLDER, shell_complete=places)
@click.option("--csv", "csv_folder", type=_FOLDER, help="Write a CSV file for each table into this folder.")
@click.option("--parquet", "parquet_folder", type=_FOLDER, help="The same as Apache Parquet; needs pyarrow.")
def export(folders: tuple[Path, ...], csv_folder: Path | None, parquet_folder: Path | None) -> None:
    """Write tables of run folders for pandas, R or a spreadsheet: figures, flows, iterations, ports, ...

    A folder that is no run folder is searched for them. A run that is damaged is named and left out, and the exit code
    is 2. docs/results.md says where each column is explained.

    \b
    hpn results export runs --csv tables
    """
    wanted = [(form, folder) for form, folder in ((_CSV, csv_folder), (_PARQUET, parquet_folder)) if folder is not None]
    if not wanted:
        raise InputError("nothing says what to write; give --csv DIR, --parquet DIR or both")
    made = collected(found(folders))
    if made.runs:
        for file, content, option in [each for form, folder in wanted for each in _files(form, folder, made)]:
            make_folder(file.parent, option)
            write(file, content, option)
            click.echo(printable(str(file)))
    _tell(made.problems)


@dataclass(frozen=True, slots=True)
class _Format:
    """A file format of tables."""

    option: str
    ending: str
    content_of: Callable[[Table, Rows], bytes]


_CSV = _Format("--csv", "csv", lambda table, rows: csv_of(table, rows).encode())
_PARQUET = _Format("--parquet", "parquet", parquet_of)


def _files(form: _Format, folder: Path, made: Collected) -> Iterator[tuple[Path, bytes, str]]:
    for name, table in made.tables.items():
        yield folder / f"{name}.{form.ending}", form.content_of(table, made.rows[name]), form.option


def _tell(problems: tuple[HpnError, ...]) -> None:
    """Report the runs left out, one line each; the others were exported."""
    if not problems:
        return
    lines = [f"left out: {printable(str(problem))}" for problem in problems]
    if any(isinstance(problem, InputError) for problem in problems):
        raise InputError(lines)
    raise MachineError("\n".join(lines))
