"""Index as a SQLite file: built from run folders, updated by changes, and disposable.

Changes when the index stores more of a run: then its number changes, and an index of another number is rebuilt. The
file is read at once, used in memory and replaced in one step. So no lock is waited for, and a full disk costs no
answer. A digest after the database detects damage, and a damaged index is rebuilt.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hpn.results.index.scan import FoundRun, Indexed, Stamp, read, run_folders
from hpn.results.run.files import content
from hpn.results.text.printable import escaped_name
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.files.replacing import replace

_NUMBER = 5
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
    run integer not null references runs(id) on delete cascade, expectation text not null, subject text not null,
    outcome text not null,
    measured real, low real, high real, "limit" real, margin real, unit text not null, bound text not null,
    open_ended integer not null, evidence text not null, more_is_worse integer not null);
create index figures_run on figures(run);
create index runs_drill on runs(drill, started_at);
"""
_STEPS = 1_000  # SQLite instructions between two calls of the progress handler
_MOST_STEPS = 200_000  # calls: some ten seconds
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_NO_VERDICT = "none"
_LONGEST = 1_000
_PATH = "cast(? as text)"  # from bytes: SQLite accepts only UTF-8 as text
_DIGEST_BYTES = hashlib.sha256().digest_size

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Changes:
    """Result of an update of the index."""

    runs: int  # in the index now
    read: int  # folders that were new or had changed
    gone: int
    unkept: str = ""  # why the index could not be stored; '' if it was


class Index:
    """Index of the runs below ``root``. Use it in a with statement of ``opened``."""

    def __init__(self, connection: sqlite3.Connection, file: Path, root: Path) -> None:
        self._db = connection
        self._file = file
        self._root = root

    def update(self) -> Changes:
        """Read new and changed runs below the root, drop those that are gone, and store a changed index."""
        known = {path: Stamp(*stamp) for path, *stamp in self._db.execute(
            "select path, manifest_bytes, manifest_ns, verdict_bytes, verdict_ns from runs"
        )}  # fmt: skip
        there = {found.path: found for found in run_folders(self._root)}
        gone = known.keys() - there.keys()
        changed = [found for path, found in there.items() if known.get(path) != found.stamp]
        old = (*gone, *(found.path for found in changed))
        with self._db:
            self._db.executemany(f"delete from runs where path = {_PATH}", [(_bytes(path),) for path in old])
            for found in changed:
                self._add(read(found))
        return Changes(len(there), len(changed), len(gone), self._keep() if old else "")

    def rows(self, sql: str, values: Sequence[str | int | float] = ()) -> Iterator[tuple[object, ...]]:
        """Yield the rows of a built-in query."""
        yield from self._db.execute(sql, values)

    def ask(self, sql: str, most_rows: int) -> tuple[Sequence[str], Sequence[tuple[object, ...]]]:
        """Return columns and rows of a user's query, which may only read. InputError for any other."""
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

    def _keep(self) -> str:
        database = self._db.serialize()
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            if not self._file.is_file():
                self._file.unlink(missing_ok=True)  # such as a pipe without a reader
            replace(self._file, database + _digest(database))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _add(self, run: Indexed) -> None:
        values = {**{name: _short(value) for name, value in _facts(run).items()}, **_stamps(run.found)}
        names = ", ".join(values)
        marks = ", ".join(_PATH if name == "path" else "?" for name in values)
        number = self._db.execute(f"insert into runs ({names}) values ({marks})", list(values.values())).lastrowid
        if run.verdict is not None:
            self._db.executemany(
                "insert into figures values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        number, _short(check.text), _short(check.subject), check.outcome.value, check.measured,
                        check.low, check.high, check.limit, check.margin, _short(check.unit), _short(check.bound),
                        check.open_ended, _short(check.evidence), check.worse_if_more,
                    )
                    for check in run.verdict.checks
                ],
            )  # fmt: skip


@contextmanager
def opened(file: Path, root: Path) -> Iterator[Index]:
    """Open the index of the runs below ``root`` from ``file``, or an empty one if the file is unusable.

    InputError if ``root`` is no folder.
    """
    if not root.is_dir():
        raise InputError(f"{root} is no folder; name the one that --out made, or where run folders are")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.text_factory = _text
        if (database := _database(file)) is not None:
            connection.deserialize(database)
        connection.execute("pragma foreign_keys = on")
        (number,) = connection.execute("pragma user_version").fetchone()
        if number != _NUMBER:
            connection.executescript(
                f"drop table if exists figures; drop table if exists runs; {_SCHEMA} pragma user_version = {_NUMBER};"
            )
        yield Index(connection, file, root.resolve())


def _database(file: Path) -> bytes | None:
    """Return the database in a file; None if there is no intact one."""
    try:
        found = content(file)
    except (InputError, MachineError):
        return None
    database, digest = found[:-_DIGEST_BYTES], found[-_DIGEST_BYTES:]
    return database if database and digest == _digest(database) else None


def _digest(database: bytes) -> bytes:
    return hashlib.sha256(database).digest()


def _text(raw: bytes) -> str:
    """Return a path as the file system has it, which may not be UTF-8."""
    return raw.decode(errors="surrogateescape")


def _bytes(path: str) -> bytes:
    return path.encode(errors="surrogateescape")


def _only_reading(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _short(value: T) -> T | str:
    """Return a text of a run truncated to a readable length; no name that hpn writes has a thousand characters."""
    return escaped_name(value[:_LONGEST]) if isinstance(value, str) else value


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


def _stamps(found: FoundRun) -> Mapping[str, bytes | int]:
    stamp = found.stamp
    return {
        "path": _bytes(found.path),
        "manifest_bytes": stamp.manifest_bytes,
        "manifest_ns": stamp.manifest_ns,
        "verdict_bytes": stamp.verdict_bytes,
        "verdict_ns": stamp.verdict_ns,
    }
