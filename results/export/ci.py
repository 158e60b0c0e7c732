"""Result of a suite of runs: the verdict of each drill, exit code, one JUnit report, one summary. Pure.

Changes when a CI system should receive something else. ``results.judge.repeats.judging`` judges repeats,
``results.comparison.gate`` compares with baselines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table

from hpn.failover.analysis.phrases import many
from hpn.results.export.junit import Judged, Unmade, repeats_suite, run_suite, unmade_suite
from hpn.results.export.junit_xml import Case, Status, Suite, report
from hpn.results.export.markdown import cell, details, rows, why
from hpn.results.judge.verdict import Outcome
from hpn.results.text.tables import table
from hpn.testbed.vm.engines import has_virtual_time

if TYPE_CHECKING:
    from hpn.results.comparison.gate import Gate
    from hpn.results.judge.repeats.repeated import Repeated

CANNOT_RUN = "error"
NO_WORSE = "no figure is worse than its baseline"
_REFUSED = 2
_MOST_FIGURES = 20  # of a drill, in the summary
_LONGEST_WHY = 120
"""Maximum length of a reason in the terminal's table; it was printed before, and reports have all of it."""
_OF_RUNS = {0: "pass", 1: "fail", 3: CANNOT_RUN, 4: "inconclusive"}
_ANSWERS = _OF_RUNS | {_REFUSED: "refused"}
_HEADLINE = _ANSWERS | {_REFUSED: "a baseline is refused", 3: "could not run everything"}
_WORST_FIRST = (1, _REFUSED, 3, 4)
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
            return _worst(map(_of_run, self.runs))
        return _worst([self.together.outcome.exit_code, *(_of_run(run) for run in self.runs if run.judged is None)])

    @property
    def exit_code(self) -> int:
        """Exit code with the baseline: 1 also if a figure is worse, 2 if the baseline is of another experiment."""
        return _worst([self.own_exit_code, self.gate.exit_code if self.gate is not None else 0])

    @property
    def answer(self) -> str:
        """Outcome: 'pass', 'fail', 'refused', 'inconclusive' or 'error'."""
        return _ANSWERS[self.exit_code]

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


def _of_run(run: CiRun) -> int:
    return run.exit_code if run.exit_code in _OF_RUNS else 3


def ci_junit(suite: str, groups: Sequence[Repeats], unused: Sequence[str] = ()) -> str:
    """Return one report: a test suite per run, and one per repeated drill with the verdict over its repeats.

    ``unused``: a line for each baseline that matches no drill; each becomes a skipped case.
    """
    suites: list[Suite] = []
    for group in groups:
        suites += map(_run_suite, group.runs)
        if group.together is not None:
            suites.append(repeats_suite(group.together, f"{_classname(group.runs[0])}.all-runs"))
        if group.gate is not None:
            suites.append(_gate_suite(group, group.gate))
    if unused:
        suites.append(Suite("baselines of no drill", [_unused_case(line) for line in unused]))
    return report(suite, suites)


def _unused_case(line: str) -> Case:
    return Case(line, "baselines", Status.SKIPPED, line, "baseline")


def _classname(run: CiRun) -> str:
    return f"{run.engine}.{run.drill}"


def _run_suite(run: CiRun) -> Suite:
    classname = _classname(run) + (f".run-{run.repeat}" if run.repeats > 1 else "")
    if run.judged is not None:
        clock = {"clock": "virtual"} if has_virtual_time(run.engine) else {}
        return run_suite(run.judged, run.title, classname, {"folder": run.folder} | clock)
    log = (run.log,) if run.log else ()
    unmade = Unmade(run.drill, run.repeat, run.error or run.reason, run.answer != CANNOT_RUN, run.wall_s, log)
    return unmade_suite(unmade, run.title, classname, {"folder": run.folder})


class Refusal(NamedTuple):
    """Reason why nothing was run: the names of its suite and case in a report, and the headline of its summary."""

    suite: str
    case: str
    headline: str
    kind: str


OF_BASELINES = Refusal("baselines", NO_WORSE, _HEADLINE[_REFUSED], "baseline")
OF_FILES = Refusal("files", "the files have no mistakes", "files have mistakes", "mistake")


def refused_junit(name: str, problems: Sequence[str], of: Refusal) -> str:
    """Return the report of a refused suite."""
    case = Case(of.case, of.kind, Status.ERROR, "\n".join(problems), of.kind)
    return report(name, [Suite(of.suite, [case], {})])


def refused_summary(name: str, problems: Sequence[str], of: Refusal) -> str:
    """Return the same as Markdown."""
    lines = (f"# {cell(name)}: {of.headline}, nothing was run", "", *(f"* {cell(each)}" for each in problems))
    return "\n".join(lines) + "\n"


def _gate_suite(group: Repeats, gate: Gate) -> Suite:
    """Return one case: a failure with worse figures, an error with a refusal, or skipped without a comparison."""
    said, classname = "\n".join(gate.lines), f"{_classname(group.runs[0])}.baseline"
    status = {1: Status.FAILURE, _REFUSED: Status.ERROR}.get(gate.exit_code, Status.PASS)
    if gate.held is None and status is Status.PASS:
        status = Status.SKIPPED
    case = Case(NO_WORSE, classname, status, said, "baseline", "" if status is not Status.PASS else said)
    return Suite(f"{group.title} against its baseline", [case], {"baseline": gate.file})


def gate_lines(groups: Iterable[Repeats]) -> list[str]:
    """Return the results of every baseline, line by line."""
    return [f"{group.title}: {line}" for group in groups if group.gate is not None for line in group.gate.lines]


def ci_table(suite: str, groups: Sequence[Repeats]) -> Table:
    """Return the summary for the terminal."""
    cut = ((*row[:-1], _beginning(row[-1])) for row in map(_row, groups))
    return table(f"suite {suite}", ("drill", "engine", "answer", "runs", "", ">wall s", "why"), cut, keys=2)


def _beginning(told: str) -> str:
    return told if len(told) <= _LONGEST_WHY else f"{told[: _LONGEST_WHY - 4]} ..."


def ci_document(groups: Sequence[Repeats]) -> dict[str, object]:
    """Return the summary as data: the outcome, and for each drill and engine its own with all its runs."""
    found = [
        {
            "drill": group.runs[0].drill,
            "engine": group.runs[0].engine,
            "answer": group.answer,
            "unstable": group.unstable,
            "reason": group.reason,
            "runs": [asdict(run) | {"answer": run.answer, "reason": run.reason} for run in group.runs],
            "together": group.together,
            "baseline": group.gate,
        }
        for group in groups
    ]
    return {"answer": _ANSWERS[exit_code(groups)], "drills": found}


def ci_summary(suite: str, groups: Sequence[Repeats], wanted: int = 0, unused: Sequence[str] = ()) -> str:
    """Return the summary as Markdown, for a file or a CI system's job page. ``wanted``: number of runs requested.

    ``unused``: a line for each baseline that matches no drill.
    """
    runs = [run for group in groups for run in group.runs]
    headline = f"{_HEADLINE[exit_code(groups)]}, {many(len(runs), 'run')}"
    if len(runs) < wanted:
        so_far = f": {_HEADLINE[exit_code(groups)]}" if runs else ""
        headline = f"ended early, {len(runs)} of {many(wanted, 'run')} made{so_far}"
    lines = [f"# {cell(suite)}: {headline}", ""]
    lines += rows(("drill", "engine", "answer", "runs", "", "wall s", "why"), map(_row, groups))
    lines += ["", *rows(("run", "answer", "folder"), ((run.title, run.answer, run.folder) for run in runs))]
    if told := [*gate_lines(groups), *unused]:
        lines += ["", "## Against the baseline", "", *(f"* {cell(line)}" for line in told)]
    lines += _figures(groups)
    lines += details((run.title, run.judged) for run in runs if run.judged is not None)
    return "\n".join(lines) + "\n"


def _figures(groups: Sequence[Repeats]) -> list[str]:
    """Return a folded table of every figure that an expectation limits: before and now."""
    gates = ((group.title, group.gate) for group in groups if group.gate is not None)
    found = [(title, *row) for title, gate in gates for row in gate.limited[:_MOST_FIGURES]]
    if not found:
        return []
    head = "<details><summary>Figures, baseline and now: medians (intervals)</summary>"
    return ["", head, "", *rows(("drill", "figure", "baseline", "now"), found), "", "</details>"]


def _row(group: Repeats) -> tuple[str, ...]:
    counts = ", ".join(f"{group.answers.count(answer)} {answer}" for answer in dict.fromkeys(group.answers))
    first, wall_s = group.runs[0], sum(run.wall_s for run in group.runs)
    unstable = "unstable" if group.unstable else ""
    why = group.reason or (group.together.proof if group.together is not None else "")
    return first.drill, first.engine, group.answer, counts, unstable, f"{wall_s:.1f}", why
