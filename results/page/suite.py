"""``suite.json``: name, order, runs not made and baselines of a suite, which no run folder has.

Changes when a page has to know more of a suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from hpn.results.export.ci_runs import Repeats
from hpn.results.run.files import dumped, read, write

if TYPE_CHECKING:
    from hpn.results.comparison.gate import Gate

FILE = "suite.json"
_ANSWERS = {1: "fail", 2: "refused"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A run of a suite; ``folder`` within the suite's. ``answer`` is 'error' if it could not be made."""

    title: str
    drill: str
    engine: str
    repeat: int
    folder: str
    answer: str
    reason: str
    wall_s: float


@dataclass(frozen=True, slots=True)
class Gated:
    """Outcome of a drill's baseline: 'pass', 'fail' if a figure is worse, 'refused' if it is of another run.

    ``changed``: timers and policies that differ from the baseline's. ``lines`` includes neither it nor ``better``.
    """

    title: str
    answer: str
    lines: tuple[str, ...]
    changed: str = ""
    better: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite that was run. ``unused``: a line for each baseline that matches none of its drills."""

    name: str
    runs: tuple[Listed, ...]
    baselines: tuple[Gated, ...] = ()
    unused: tuple[str, ...] = ()


_SUITE = TypeAdapter(Suite)


def write_suite(out: Path, name: str, groups: Sequence[Repeats], unused: Sequence[str] = ()) -> None:
    """Write OUT/suite.json."""
    listed = (
        Listed(run.title, run.drill, run.engine, run.repeat, run.folder, run.answer, run.reason, run.wall_s)
        for group in groups
        for run in group.runs
    )
    gated = (_gated(group.title, group.gate) for group in groups if group.gate is not None)
    write(out / FILE, dumped(_SUITE, Suite(name, tuple(listed), tuple(gated), tuple(unused)), indent=1))


def _gated(title: str, gate: Gate) -> Gated:
    apart = {gate.changed, *gate.better}
    lines = tuple(line for line in gate.lines if line not in apart)
    answer = _ANSWERS.get(gate.exit_code, "pass")
    return Gated(title, answer, lines, gate.changed, gate.better, gate.reason)


def suite_in(folder: Path) -> Suite | None:
    """Return the suite that was run there; None if there is none. InputError for a damaged file."""
    path = folder / FILE
    return read(path, _SUITE) if path.is_file() else None
