"""Runs below a folder: lists, trends, queries, and deletion of old runs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Group

from hpn.commands.completing import drill_names
from hpn.commands.followers import tell_next
from hpn.commands.group import RenamedGroup
from hpn.commands.page import as_json_option, show, terminal
from hpn.commands.tables import export
from hpn.results.index.experiments import set_apart
from hpn.results.index.prune import delete, old_runs
from hpn.results.index.queries import RunFilter, counts, runs, trends
from hpn.results.index.store import Index, opened
from hpn.results.text.index import counts_table, runs_table, trend_parts
from hpn.results.text.printable import escaped_name, printable
from hpn.results.text.tables import table
from hpn.testbed.errors import InputError
from hpn.testbed.vm.kernel_cache import cache_folder

_ROOT = click.option(
    "--runs",
    "root",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="The folder below which run folders are.",
)
_MOST = click.option(
    "--most", type=click.IntRange(1, 1_000_000), default=50, show_default=True, help="So many at most."
)


@click.group(cls=RenamedGroup)
def results() -> None:
    """List run folders, show trends of a figure, ask in SQL, export tables, delete old runs.

    An index of all run folders below --runs is kept in the cache and brought up to date each time; deleting it loses
    nothing. Tables for sql: runs, and figures (one row for each expectation of a run).
    """


results.add_command(export)


@results.command("ls")
@_ROOT
@click.option("--drill", default="", shell_complete=drill_names, help="Of this drill.")
@click.option("--outcome", type=click.Choice(["pass", "fail", "inconclusive", "none"]), default=None)
@click.option("--fabric", default="", help="On this fabric.")
@click.option("--engine", default="", help="On this engine.")
@click.option("--since", default="", metavar="DATE", help="Started then or later, as 2026-11-22.")
@click.option("--counts", "counted", is_flag=True, help="How many of each outcome, by drill.")
@_MOST
@as_json_option
def ls(
    root: Path,
    drill: str,
    outcome: str | None,
    fabric: str,
    engine: str,
    since: str,
    counted: bool,
    most: int,
    as_json: bool,
) -> None:
    """List runs, the newest first."""
    wanted = RunFilter(drill, outcome or "", fabric, engine, since)
    empty = _no_run(root, wanted)
    newest = None
    with index_of(root) as index:
        if counted:
            found = counts(index, wanted)
            answer: object = [{"drill": name, "outcome": of, "runs": count} for name, of, count in found]
            shown = counts_table(found, empty)
        else:
            lines = runs(index, wanted, most)
            newest = lines[0].path if lines else None
            answer, shown = [asdict(line) for line in lines], runs_table(lines, empty)
    if as_json:
        click.echo(_json(answer))
    else:
        show(shown)
    tell_next("results ls", quiet=as_json, run=newest, drill=None if newest or counted else "link-down")


def _no_run(root: Path, wanted: RunFilter) -> str:
    """Return why a list is empty, and what fills it."""
    if wanted != RunFilter():
        return f"no run below {root} is like that; hpn results ls without options shows every run"
    return f"no run below {root}; hpn drill run NAME makes one, --runs names another folder"


@results.command()
@click.argument("drill", shell_complete=drill_names)
@_ROOT
@click.option("--expectation", default="", metavar="TEXT", help="Only expectations that hold this text.")
@click.option("--engine", default="", help="On this engine.")
@_MOST
@as_json_option
def trend(drill: str, root: Path, expectation: str, engine: str, most: int, as_json: bool) -> None:
    """Show what the runs of DRILL measured for each of its expectations, the oldest first.

    Runs on another fabric, with other faults or settings, are another series. '*' is the figure, '-' its interval, '|'
    the limit.
    """
    with index_of(root) as index:
        found = set_apart(trends(index, RunFilter(drill=drill, engine=engine), expectation, most))
    if as_json:
        click.echo(_json([asdict(each) for each in found]))
        return
    for each in found:
        show(Group(*trend_parts(each, terminal().width)))
    tell_next("results trend", drill=drill, folder=root)


@results.command()
@click.argument("query")
@_ROOT
@_MOST
@as_json_option
def sql(query: str, root: Path, most: int, as_json: bool) -> None:
    """Print what a query in SQLite's SQL finds; it can read and nothing else.

    A terminal gets a table; a file or a pipe gets lines, their cells parted by tabs.

    \b
    hpn results sql "select drill, outcome, count(*) from runs group by 1, 2"
    """
    with index_of(root) as index:
        columns, rows = index.ask(query, most)
    if as_json:
        click.echo(_json([dict(zip(columns, row, strict=True)) for row in rows]))
        return
    if terminal().is_terminal:
        told = (["-" if cell is None else cell for cell in row] for row in rows)
        show(table("", columns, told, empty="the query finds no row"))
        return
    for row in (columns, *rows):
        click.echo("\t".join("" if cell is None else printable(str(cell)) for cell in row))


@results.command()
@_ROOT
@click.option("--drill", default="", shell_complete=drill_names, help="Of this drill only.")
@click.option("--keep", type=click.IntRange(0), required=True, help="Keep so many of each, the newest.")
@click.option("--yes", is_flag=True, help="Delete; without it only say what would be.")
def prune(root: Path, drill: str, keep: int, yes: bool) -> None:
    """Delete run folders but the newest of each drill, fabric, settings and engine.

    A run that is under way has no verdict yet, and stays.
    """
    with index_of(root) as index:
        old = old_runs(index, drill, keep)
    deleted = 0
    for run in old:
        gone = yes and delete(run)
        deleted += gone
        said = ("deleted" if gone else "kept, for it has changed or is in use:") if yes else "would delete"
        click.echo(f"{said} {printable(str(run.path))}")
    click.echo(f"{deleted if yes else len(old)} run folders" + ("" if yes or not old else "; --yes deletes them"))


@contextmanager
def index_of(root: Path) -> Iterator[Index]:
    """Open the index of these runs and bring it up to date."""
    if not root.is_dir():
        raise InputError(f"{root} is no folder; name the one that run folders are below with --runs")
    name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    file = cache_folder() / "results" / f"{name}.sqlite"
    with opened(file, root) as index:
        why = index.update().unkept
        if why:
            way_out = "the answer is whole; set HPN_CACHE_DIR, or the next command reads these runs again"
            click.echo(f"hpn: cannot keep the index in {file}: {why}; {way_out}", err=True)
        yield index


def _json(answer: object) -> str:
    """Return an answer as JSON that any program accepts: bytes of a path that are not UTF-8 are escaped."""
    return json.dumps(_escaped(answer), indent=2, default=str)


def _escaped(answer: object) -> object:
    match answer:
        case str():
            return escaped_name(answer)
        case list() | tuple():
            return [_escaped(each) for each in answer]
        case dict():
            return {key: _escaped(each) for key, each in answer.items()}
    return answer
