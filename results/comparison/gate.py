"""Gate of a suite: its drills' runs compared with a folder of baselines, a file for each drill and engine.

Reads untrusted files. Changes when a suite is gated by another rule. ``hpn compare --save`` writes such files. The
fabric's timers and policies may differ from the baseline's, since a gate is to judge such changes. Another fabric,
drill, engine or load is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.results.comparison.baseline import Baseline, BaselineComparison, baseline_of, held_against, written
from hpn.results.comparison.groups import Compared, Group, grouped
from hpn.results.text.comparison import changed_line, figure_lines, held_lines, limited_rows, worse_lines
from hpn.testbed.errors import InputError

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Gate:
    """Outcome of one drill on one engine. ``held`` is None if its runs were not compared; ``said`` has the reason."""

    file: str
    held: BaselineComparison | None = None
    said: str = ""
    is_refused: bool = False

    @property
    def exit_code(self) -> int:
        """Exit code: 1 if a figure is worse, 2 if the baseline is of another experiment, else 0."""
        if self.is_refused:
            return InputError.exit_code
        return 1 if self.held is not None and self.held.worse else 0

    @property
    def lines(self) -> tuple[str, ...]:
        """Result in words: changed timers and policies, then worse figures, as on the page."""
        return (self.said,) if self.held is None else tuple(line.plain for line in held_lines(self.held))

    @property
    def changed(self) -> str:
        """Line of ``lines`` with the changed timers and policies; '' if there are none."""
        return "" if self.held is None else changed_line(self.held)

    @property
    def better(self) -> tuple[str, ...]:
        """Lines of ``lines`` with better figures."""
        return () if self.held is None else tuple(figure_lines(self.held.better))

    @property
    def limited(self) -> tuple[tuple[str, str, str], ...]:
        """Figures that expectations limit: name, baseline, now."""
        return () if self.held is None else tuple(limited_rows(self.held))

    @property
    def reason(self) -> str:
        """Reason why the gate fails, in one line; '' if it does not."""
        if not self.exit_code:
            return ""
        if self.held is None:
            return self.said
        first = min(
            self.held.worse, key=lambda each: bool(each.key.where)
        )  # an expectation before figures without a limit
        more = len(self.held.worse) - 1
        return next(worse_lines(self.held, [first])) + (f"; {more} more worse" if more else "")


def file_of(folder: Path, drill: str, engine: str) -> Path:
    """Return the path of the baseline of a drill on an engine."""
    return folder / f"{drill}.{engine}{_SUFFIX}"


def strays(folder: Path, wanted: Collection[tuple[str, str]]) -> tuple[Path, ...]:
    """Return the baselines in the folder that match no wanted (drill, engine).

    InputError for the baseline of a wanted drill that is of another engine only, while its own engine has none.
    """
    files = {file_of(folder, *each) for each in wanted}
    found = [path for path in sorted(folder.glob(f"*{_SUFFIX}")) if path not in files]
    lacking = {drill: engine for drill, engine in wanted if not file_of(folder, drill, engine).exists()}
    named = ((path, *path.name.removesuffix(_SUFFIX).partition(".")) for path in found)
    problems = [
        f"{path}: the baseline is of engine {engine!r}, the suite runs {drill} on {lacking[drill]!r}"
        for path, drill, _, engine in named
        if drill in lacking
    ]
    if problems:
        raise InputError(problems)
    return tuple(found)


def gate(kept: Baseline, file: Path, runs: Sequence[Compared], tolerance: float = 0.0) -> Gate:
    """Compare the runs of one drill with its baseline; figures worse by no more than ``tolerance`` pass."""
    try:
        group = _one(runs)
        if not group.runs:
            return Gate(str(file), said="not held against its baseline: no run can be trusted")
        return Gate(str(file), held_against(kept, group, however_run=True, tolerance=tolerance))
    except InputError as error:
        return Gate(str(file), said=f"{file} is refused: {error}", is_refused=True)


def text_of(runs: Sequence[Compared]) -> str:
    """Return the content of a baseline file of these runs.

    InputError if they are of several experiments, or of none.
    """
    return written(baseline_of(_one(runs)))


def _one(runs: Sequence[Compared]) -> Group:
    groups = grouped(runs, ())
    if len(groups) != 1:
        raise InputError(f"its runs are of {len(groups)} versions of hpn, and a baseline is of one")
    return groups[0]
