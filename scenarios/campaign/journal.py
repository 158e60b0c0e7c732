"""Campaign on disk: its plan, and a journal of its results, so that it can resume after any interruption.

``campaign.json`` has the plan and is written once. ``journal.jsonl`` grows by one line for each sequence and each
shrunk violation. Each line is on the disk before the next step begins; a line cut off by a crash is removed.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hpn.scenarios.campaign import drillfile
from hpn.scenarios.campaign.plan import FaultSequence, Plan
from hpn.scenarios.campaign.result import Invariant, Outcome, Result
from hpn.testbed.errors import InputError
from hpn.testbed.files.bounded import read_bounded
from hpn.testbed.files.replacing import replace

PLAN, JOURNAL, DRILLS = "campaign.json", "journal.jsonl", "violations"
_MOST_OF_PLAN, _MOST_OF_JOURNAL = 4_000_000, 256_000_000  # a sequence takes some kilobytes, and there may be thousands


@dataclass(frozen=True, slots=True)
class Shrunk:
    """Result of shrinking a violation: the smallest sequence that reproduces it, or that none did.

    ``failed`` of ``runs`` runs, each on its own lab, reproduced it. ``file`` is the drill file, or '' when too few did.
    ``like`` is the index of a shrunk violation that explains this one; then nothing was run.
    """

    index: int
    invariants: tuple[Invariant, ...]
    smallest: FaultSequence
    failed: int
    runs: int
    file: str = ""
    like: int | None = None


Entry = Result | Shrunk
_RESULT = TypeAdapter(Result)
_SHRUNK = TypeAdapter(Shrunk)
_PLAN = TypeAdapter(Plan)


@dataclass(frozen=True, slots=True)
class Done:
    """Content of a journal."""

    results: tuple[Result, ...] = ()
    shrunk: tuple[Shrunk, ...] = ()

    @property
    def indexes(self) -> frozenset[int]:
        """Indexes of sequences that need not be run again."""
        return frozenset(result.sequence.index for result in self.results)

    def count(self, outcome: Outcome) -> int:
        """Return the number of sequences with that outcome."""
        return sum(result.outcome is outcome for result in self.results)

    @property
    def waiting(self) -> tuple[Result, ...]:
        """Violations not yet shrunk."""
        told = {found.index for found in self.shrunk}
        return tuple(r for r in self.results if r.violations and r.sequence.index not in told)

    @property
    def unconfirmed(self) -> tuple[Shrunk, ...]:
        """Violations that could not be reproduced."""
        return tuple(found for found in self.shrunk if not found.file and found.like is None)


class Journal:
    """Journal of a running campaign; see ``opened``."""

    def __init__(self, folder: Path, fd: int) -> None:
        self.folder = folder
        self._fd = fd

    def add(self, entry: Entry) -> None:
        """Append one entry; it is on the disk when this returns."""
        kind = "result" if isinstance(entry, Result) else "shrunk"
        content = (
            _RESULT.dump_python(entry, mode="json")
            if isinstance(entry, Result)
            else _SHRUNK.dump_python(entry, mode="json")
        )
        os.write(self._fd, json.dumps({kind: content}).encode() + b"\n")
        os.fsync(self._fd)

    def done(self) -> Done:
        """Return everything so far."""
        return _done(self.folder)


@contextmanager
def opened(folder: Path, plan: Plan) -> Iterator[Journal]:
    """Open the journal of the campaign in ``folder``, new or resumed, with an exclusive lock.

    InputError when the folder has another campaign or other files, or is in use.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _claim(folder, plan)
        fd = os.open(folder / JOURNAL, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InputError(f"cannot keep a campaign in {folder}: {error.strerror}; choose another --out") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"a campaign is running in {folder}; wait for it or choose another --out") from None
        _cut_torn_line(fd, folder / JOURNAL)
        yield Journal(folder, fd)
    finally:
        os.close(fd)


def load(folder: Path) -> tuple[Plan, Done]:
    """Return the campaign in ``folder``, running or not. InputError when there is none."""
    path = folder / PLAN
    if not os.path.isfile(path):  # unlike Path.is_file, False if not accessible
        raise InputError(f"{folder} holds no campaign (no {PLAN}); name the folder that --out made")
    return _plan(path), _done(folder)


def _claim(folder: Path, plan: Plan) -> None:
    path = folder / PLAN
    if path.exists():
        kept = _plan(path)
        names = [field.name for field in fields(Plan) if getattr(kept, field.name) != getattr(plan, field.name)]
        if names:
            what = " and ".join(names)
            raise InputError(
                f"{folder} holds a campaign with another {what}; give what it began with, or another --out"
            )
        return
    if any(folder.iterdir()):
        raise InputError(f"{folder} is not empty and holds no campaign; choose another --out")
    replace(path, _PLAN.dump_json(plan, indent=2))


def _plan(path: Path) -> Plan:
    try:
        return _PLAN.validate_json(read_bounded(path, _MOST_OF_PLAN, "campaign's plan"))
    except (ValidationError, OSError) as error:
        raise InputError(f"{path} is damaged or of another version; choose another --out") from error


def _cut_torn_line(fd: int, path: Path) -> None:
    whole = read_bounded(path, _MOST_OF_JOURNAL, "campaign's journal").rfind(b"\n") + 1
    os.ftruncate(fd, whole)


def _done(folder: Path) -> Done:
    path = folder / JOURNAL
    results: dict[int, Result] = {}
    shrunk: dict[int, Shrunk] = {}
    try:
        text = read_bounded(path, _MOST_OF_JOURNAL, "campaign's journal")
    except FileNotFoundError:
        text = b""
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; choose another --out") from error
    for number, line in enumerate(text[: text.rfind(b"\n") + 1].splitlines(), 1):
        try:
            entry = json.loads(line)
            if "result" in entry:
                result = _RESULT.validate_python(entry["result"])
                _check(result.sequence)
                results[result.sequence.index] = result
            else:
                found = _SHRUNK.validate_python(entry["shrunk"])
                _check(found.smallest)
                shrunk[found.index] = found
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise InputError(f"{path}:{number} is damaged or of another version; remove the line") from error
    return Done(tuple(results.values()), tuple(shrunk.values()))


def _check(sequence: FaultSequence) -> None:
    """Raise KeyError or ValueError for a fault or parameter that a drill file cannot have; it would end a resume."""
    for step in sequence.steps:
        drillfile.entry(1, step)
