"""``suite.json``: what no run folder of a suite tells: its name, the order of its runs, and those that were not made.

Changes when a page has to know more of a suite.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from results.ci import CiRun
from results.run.files import dumped, read, write

FILE = "suite.json"


@dataclass(frozen=True, slots=True)
class Listed:
    """A run of a suite; ``folder`` within the suite's. ``answer`` is 'error' where it could not be made."""

    title: str
    drill: str
    engine: str
    repeat: int
    folder: str
    answer: str
    reason: str
    wall_s: float


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite that was run."""

    name: str
    runs: tuple[Listed, ...]


_SUITE = TypeAdapter(Suite)


def write_suite(out: Path, name: str, runs: Iterable[CiRun]) -> None:
    """Write OUT/suite.json."""
    listed = (
        Listed(run.title, run.drill, run.engine, run.repeat, run.folder, run.answer, run.reason, run.wall_s)
        for run in runs
    )
    write(out / FILE, dumped(_SUITE, Suite(name, tuple(listed)), indent=1))


def suite_in(folder: Path) -> Suite | None:
    """The suite that was run there; None where none was. InputError for a damaged file."""
    path = folder / FILE
    return read(path, _SUITE) if path.is_file() else None
