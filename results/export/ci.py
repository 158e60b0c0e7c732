"""Result of a suite of runs: the verdict of each drill, exit code, one JUnit report, one summary. Pure.

Changes when a CI system should receive something else. ``results.judge.repeats.judging`` judges repeats,
``results.comparison.gate`` compares with baselines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table

from hpn.failover.analysis.phrases import many
from hpn.results.export.ci_runs import ANSWERS, CANNOT_RUN, REFUSED, CiRun, Repeats, exit_code
from hpn.results.export.junit import Unmade, repeats_suite, run_suite, unmade_suite
from hpn.results.export.junit_xml import Case, Status, Suite, report
from hpn.results.export.markdown import cell, details, rows
from hpn.results.text.tables import table
from hpn.testbed.vm.engines import has_virtual_time

if TYPE_CHECKING:
    from hpn.results.comparison.gate import Gate

NO_WORSE = "no figure is worse than its baseline"
_MOST_FIGURES = 20  # of a drill, in the summary
_LONGEST_WHY = 120
"""Maximum length of a reason in the terminal's table; it was printed before, and reports have all of it."""
_HEADLINE = ANSWERS | {REFUSED: "a baseline is refused", 3: "could not run everything"}


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


OF_BASELINES = Refusal("baselines", NO_WORSE, _HEADLINE[REFUSED], "baseline")
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
    status = {1: Status.FAILURE, REFUSED: Status.ERROR}.get(gate.exit_code, Status.PASS)
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
    return {"answer": ANSWERS[exit_code(groups)], "drills": found}


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
