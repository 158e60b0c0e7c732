"""The index as a SQLite file: made of run folders, brought up to date by what changed, thrown away without loss.

Changes when the index keeps more of a run: then its number changes, and an index of another number is made anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from results.index.scan import Found, Indexed, Stamp, read, run_folders
from testbed.errors import InputError, MachineError

_NUMBER = 3
_SCHEMA = """
create table runs (
    id integer primary key, path text not null unique, drill text not null, outcome text not null,
    fabric text not null, architecture text not null, engine text not null, datapath text not null,
    kernel text not null, profile text not null, version text not null, started_at text not null,
    duration_s real not null, repeat integer not null, phase integer not null, attempt integer not null,
    reason text not null, problem text not null, experiment text not null,
    manifest_bytes integer not null, manifest_ns integer not null,
    verdict_bytes integer not null, verdict_ns integer not null);
create table figures (
    run integer not null references runs(id) on delete cascade, expectation text not null, outcome text not null,
    measured real, low real, high real, "limit" real, margin real, unit text not null, bound text not null,
    open_ended integer not null, evidence text not null);
create index figures_run on figures(run);
create index runs_drill on runs(drill, started_at);
"""
_STEPS = 1_000  # of SQLite's machine between two looks at the clock
_MOST_STEPS = 200_000  # looks: some ten seconds
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_NO_VERDICT = "none"
_LONGEST = 1_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Changes:
    """What bringing the index up to date found."""

    runs: int  # in the index now
    read: int  # folders that were new or had changed
    gone: int


class Index:
    """The index of the runs below ``root``. Use it in a with statement of ``opened``."""

    def __init__(self, connection: sqlite3.Connection, root: Path) -> None:
        self._db = connection
        self._root = root

    def update(self) -> Changes:
        """Read what is new or has changed below the root, and forget what is gone."""
        known = {path: Stamp(*stamp) for path, *stamp in self._db.execute(
            "select path, manifest_bytes, manifest_ns, verdict_bytes, verdict_ns from runs"
        )}  # fmt: skip
        there = {found.path: found for found in run_folders(self._root)}
        gone = known.keys() - there.keys()
        changed = [found for path, found in there.items() if known.get(path) != found.stamp]
        with self._db:
            self._db.executemany("delete from runs where path = ?", [(path,) for path in (*gone, *_paths(changed))])
            for found in changed:
                self._add(read(found))
        return Changes(len(there), len(changed), len(gone))

    def rows(self, sql: str, values: Sequence[str | int | float] = ()) -> Iterator[tuple[object, ...]]:
        """What a query of ours finds."""
        yield from self._db.execute(sql, values)

    def ask(self, sql: str, most_rows: int) -> tuple[Sequence[str], Sequence[tuple[object, ...]]]:
        """Columns and rows of somebody's own query, which may read and nothing else. InputError for any other."""
        self._db.set_authorizer(_only_reading)
        looks = iter(range(_MOST_STEPS))
        self._db.set_progress_handler(lambda: next(looks, None) is None, _STEPS)
        try:
            cursor = self._db.execute(sql)
            rows = cursor.fetchmany(most_rows)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise InputError(f"the index does not take this query: {error}; tables are runs and figures") from error
        finally:
            self._db.set_progress_handler(None, 0)
            self._db.set_authorizer(None)
        if cursor.description is None:
            raise InputError("the index takes one query that reads, as in: select drill, count(*) from runs group by 1")
        return [column[0] for column in cursor.description], rows

    def _add(self, run: Indexed) -> None:
        values = {**{name: _short(value) for name, value in _facts(run).items()}, **_stamps(run.found)}
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        number = self._db.execute(f"insert into runs ({names}) values ({marks})", list(values.values())).lastrowid
        if run.verdict is not None:
            self._db.executemany(
                "insert into figures values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        number, _short(check.text), check.outcome.value, check.measured, check.low, check.high,
                        check.limit, check.margin, _short(check.unit), _short(check.bound), check.open_ended,
                        _short(check.evidence),
                    )
                    for check in run.verdict.checks
                ],
            )  # fmt: skip


@contextmanager
def opened(file: Path, root: Path) -> Iterator[Index]:
    """The index of the runs below ``root`` in ``file``, made where there is none or one of another version.

    InputError where ``root`` is no folder, MachineError where the file cannot be had.
    """
    if not root.is_dir():
        raise InputError(f"{root} is no folder; name the one that --out made, or where run folders are")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        connection = _connected(file)
    except (OSError, sqlite3.Error) as error:
        way_out = "set HPN_CACHE_DIR to a folder of yours"
        raise MachineError(f"cannot keep the index in {file}: {error}; {way_out}") from error
    try:
        yield Index(connection, root.resolve())
    finally:
        connection.close()


def _connected(file: Path) -> sqlite3.Connection:
    """A damaged index is no loss: it is made again."""
    try:
        return _ready(file)
    except sqlite3.DatabaseError:
        file.unlink(missing_ok=True)
        return _ready(file)


def _ready(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=30)
    connection.execute("pragma foreign_keys = on")
    (number,) = connection.execute("pragma user_version").fetchone()
    if number != _NUMBER:
        with connection:
            connection.executescript(
                f"drop table if exists figures; drop table if exists runs; {_SCHEMA} pragma user_version = {_NUMBER};"
            )
    return connection


def _only_reading(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _short(value: T) -> T | str:
    """A text of a run as long as anybody reads; no name that a run gives has a thousand letters."""
    return value[:_LONGEST] if isinstance(value, str) else value


def _paths(found: Iterable[Found]) -> Iterator[str]:
    return (each.path for each in found)


def _facts(run: Indexed) -> Mapping[str, str | int | float]:
    manifest, verdict = run.manifest, run.verdict
    if manifest is None:
        plain = dict.fromkeys(
            ("drill", "fabric", "architecture", "engine", "datapath", "kernel", "profile", "version", "started_at"), ""
        )
        return {**plain, "outcome": _NO_VERDICT, "duration_s": 0.0, "repeat": 0, "phase": 0, "attempt": 0, "reason": "",
                "problem": run.problem, "experiment": ""}  # fmt: skip
    return {
        "drill": manifest.drill,
        "fabric": manifest.fabric,
        "architecture": manifest.architecture,
        "engine": manifest.engine,
        "datapath": manifest.datapath,
        "kernel": manifest.kernel,
        "profile": manifest.profile,
        "version": manifest.versions.get("hpn", ""),
        "started_at": manifest.date,
        "duration_s": manifest.duration_s,
        "repeat": manifest.repeat,
        "phase": manifest.phase,
        "attempt": manifest.attempt,
        "experiment": run.experiment,
        "outcome": _NO_VERDICT if verdict is None else verdict.outcome.value,
        "reason": "" if verdict is None or not verdict.reasons else verdict.reasons[0],
        "problem": "",
    }


def _stamps(found: Found) -> Mapping[str, str | int]:
    stamp = found.stamp
    return {
        "path": found.path,
        "manifest_bytes": stamp.manifest_bytes,
        "manifest_ns": stamp.manifest_ns,
        "verdict_bytes": stamp.verdict_bytes,
        "verdict_ns": stamp.verdict_ns,
    }
