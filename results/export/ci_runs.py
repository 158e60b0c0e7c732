"""Runs of a suite, the repeats that they make, and their answers and exit codes. Pure.

Changes when a run of a suite can end in another way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hpn.results.export.junit import Judged
from hpn.results.export.markdown import why
from hpn.results.judge.verdict import Outcome

if TYPE_CHECKING:
    from hpn.results.comparison.gate import Gate
    from hpn.results.judge.repeats.repeated import Repeated


CANNOT_RUN = "error"
REFUSED = 2
_OF_RUNS = {0: "pass", 1: "fail", 3: CANNOT_RUN, 4: "inconclusive"}
ANSWERS = _OF_RUNS | {REFUSED: "refused"}
_WORST_FIRST = (1, REFUSED, 3, 4)
"""A failed drill outweighs one without a verdict, which outweighs an inconclusive one (DESIGN rule 8)."""


@dataclass(frozen=True, slots=True)
class CiRun:
    """One run of a suite: with its verdict, or with the error that prevented one.

    ``folder`` is relative to the suite's. ``exit_code`` is the verdict's, or that of the error.
    """

    drill: str
    engine: str
    repeat: int  # from 1
    repeats: int
    folder: str
    wall_s: float
    judged: Judged | None
    error: str = ""
    exit_code: int = 0
    log: str = ""  # file with its output, if any

    @property
    def title(self) -> str:
        """Title: 'link-down on qemu #2'."""
        return f"{self.drill} on {self.engine}" + (f" #{self.repeat}" if self.repeats > 1 else "")

    @property
    def answer(self) -> str:
        """Outcome: 'pass', 'fail', 'inconclusive' or 'error'.

        A run that was inconclusive from the start is no error.
        """
        if self.judged is not None:
            return self.judged.verdict.outcome.value
        return Outcome.INCONCLUSIVE.value if self.exit_code == Outcome.INCONCLUSIVE.exit_code else CANNOT_RUN

    @property
    def reason(self) -> str:
        """Reason why it is not a pass, in one line; '' for a pass."""
        if self.judged is not None:
            return why(self.judged.verdict)
        return self.error.splitlines()[0] if self.error else "it ended without a verdict"


@dataclass(frozen=True, slots=True)
class Repeats:
    """Runs of one drill on one engine. ``together``: the verdict over its repeats, None if it has only one run.

    ``gate``: the outcome of its baseline, None if none was requested.
    """

    runs: tuple[CiRun, ...]
    together: Repeated | None = None
    gate: Gate | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Drill and engine."""
        return self.runs[0].drill, self.runs[0].engine

    @property
    def answers(self) -> tuple[str, ...]:
        """Outcomes of the runs, in the order of their repeats."""
        return tuple(run.answer for run in self.runs)

    @property
    def own_exit_code(self) -> int:
        """Exit code without the baseline: 1 for a fail, else 3 if a run could not be made, else 4 or 0."""
        if self.together is None:
            return _worst(map(code_of_run, self.runs))
        return _worst([self.together.outcome.exit_code, *(code_of_run(run) for run in self.runs if run.judged is None)])

    @property
    def exit_code(self) -> int:
        """Exit code with the baseline: 1 also if a figure is worse, 2 if the baseline is of another experiment."""
        return _worst([self.own_exit_code, self.gate.exit_code if self.gate is not None else 0])

    @property
    def answer(self) -> str:
        """Outcome: 'pass', 'fail', 'refused', 'inconclusive' or 'error'."""
        return ANSWERS[self.exit_code]

    @property
    def unstable(self) -> bool:
        """True if some repeats pass and some fail."""
        return self.together is not None and self.together.unstable

    @property
    def reason(self) -> str:
        """Reason why it is not a pass: its own limits or the failure of one of its runs, then its baseline."""
        said = why(self.together.verdict) if self.together is not None else ""
        said = said or next((run.reason for run in self.runs if run.reason), "")
        held = f"against its baseline {self.gate.reason}" if self.gate is not None and self.gate.reason else ""
        return "; ".join(filter(None, (said if self.own_exit_code or not held else "", held)))

    @property
    def title(self) -> str:
        """Title: 'link-down on qemu'."""
        return f"{self.runs[0].drill} on {self.runs[0].engine}"


def grouped(runs: Iterable[CiRun]) -> tuple[Repeats, ...]:
    """Group runs by drill and engine, in the order of their first run, and judge each group over its repeats."""
    groups: dict[tuple[str, str], list[CiRun]] = {}
    for run in runs:
        groups.setdefault((run.drill, run.engine), []).append(run)
    return tuple(_together(Repeats(tuple(sorted(found, key=lambda run: run.repeat)))) for found in groups.values())


def _together(group: Repeats) -> Repeats:
    made = {run.repeat: run.judged.verdict for run in group.runs if run.judged is not None}
    if group.runs[0].repeats == 1 or not made:
        return group
    from hpn.results.judge.repeats.judging import (
        judge_repeats,  # imports numpy, which no other command of the suite needs
    )

    return replace(group, together=judge_repeats(group.title, tuple(made.values()), tuple(made)))


def exit_code(groups: Iterable[Repeats]) -> int:
    """Return 1 if any drill failed, else 2 if a baseline is refused, 3 if a run could not be made, 4, or 0."""
    return _worst(group.exit_code for group in groups)


def _worst(codes: Iterable[int]) -> int:
    found = set(codes)
    return next((code for code in _WORST_FIRST if code in found), 0)


def code_of_run(run: CiRun) -> int:
    """Return the exit code of a run, 3 for any that has no answer."""
    return run.exit_code if run.exit_code in _OF_RUNS else 3
