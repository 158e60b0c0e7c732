"""What a suite of runs adds up to: stability over repeats, exit code, one JUnit report, one summary. Pure.

Changes when a CI system should be told something else. A single run's JUnit is ``results.junit``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from rich.table import Table

from results.junit import Judged, junit_xml
from results.tables import table
from results.terminal import describe
from results.verdict import Outcome

CANNOT_RUN = "error"
_WORST_FIRST = (1, 3, 4)
"""A failed run outweighs one that could not be made, which outweighs an inconclusive one (DESIGN rule 8)."""


@dataclass(frozen=True, slots=True)
class CiRun:
    """One run of a suite: judged, or with the error that kept it from being so. ``folder`` is relative to the suite's.

    ``exit_code`` is a verdict's, or that of the error.
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

    @property
    def title(self) -> str:
        """'link-down on qemu #2'."""
        return f"{self.drill} on {self.engine}" + (f" #{self.repeat}" if self.repeats > 1 else "")

    @property
    def answer(self) -> str:
        """'pass', 'fail', 'inconclusive' or 'error'."""
        return self.judged.verdict.outcome.value if self.judged is not None else CANNOT_RUN

    @property
    def reason(self) -> str:
        """Why it is not a pass, in one line; '' for a pass."""
        if self.judged is None:
            return self.error.splitlines()[0] if self.error else "it ended without a verdict"
        verdict = self.judged.verdict
        if verdict.reasons:
            return verdict.reasons[0]
        worst = next((check for check in verdict.checks if check.outcome is verdict.outcome), None)
        return "" if worst is None or verdict.outcome is Outcome.PASS else f"{worst.text}: {describe(worst)}"


@dataclass(frozen=True, slots=True)
class Repeats:
    """All runs of one drill on one engine."""

    runs: tuple[CiRun, ...]

    @property
    def answers(self) -> tuple[str, ...]:
        """One per run, in the order of their repeats."""
        return tuple(run.answer for run in self.runs)

    @property
    def unstable(self) -> bool:
        """Whether repeats disagree."""
        return len(set(self.answers)) > 1

    @property
    def title(self) -> str:
        """'link-down on qemu'."""
        return f"{self.runs[0].drill} on {self.runs[0].engine}"


def grouped(runs: Iterable[CiRun]) -> tuple[Repeats, ...]:
    """By drill and engine, in the order of their first run."""
    groups: dict[tuple[str, str], list[CiRun]] = {}
    for run in runs:
        groups.setdefault((run.drill, run.engine), []).append(run)
    return tuple(Repeats(tuple(sorted(found, key=lambda run: run.repeat))) for found in groups.values())


def exit_code(runs: Iterable[CiRun]) -> int:
    """1 when any run failed, else 3 when any could not be made, else 4 when any was inconclusive, else 0."""
    codes = {run.exit_code if run.exit_code in {0, *_WORST_FIRST} else 3 for run in runs}
    return next((code for code in _WORST_FIRST if code in codes), 0)


def ci_junit(suite: str, runs: Sequence[CiRun]) -> str:
    """One report: a test suite per run, and one that says of every repeated drill whether its answer held."""
    report = JUnitXml(suite)
    for run in runs:
        report.add_testsuite(_run_suite(run))
    repeated = [group for group in grouped(runs) if len(group.runs) > 1]
    if repeated:
        report.add_testsuite(_stability_suite(repeated))
    text = report.tostring()  # type: ignore[no-untyped-call]  # junitparser leaves it without types
    return text.decode() if isinstance(text, bytes) else str(text)


def _run_suite(run: CiRun) -> TestSuite:
    if run.judged is None:
        suite = TestSuite(run.title)
        case = TestCase("the drill runs", classname=f"{run.engine}.{run.drill}", time=round(run.wall_s, 3))
        case.result = [Error(run.error or run.reason, "machine")]
        suite.add_testcase(case)
        suite.update_statistics()  # type: ignore[no-untyped-call]  # as above
        return suite
    (suite,) = (part for part in JUnitXml.fromstring(junit_xml([run.judged])) if isinstance(part, TestSuite))
    suite.name = run.title
    for part in suite:
        if isinstance(part, TestCase):
            part.classname = f"{run.engine}.{run.drill}"
    suite.add_property("folder", run.folder)
    return suite


def _stability_suite(groups: Iterable[Repeats]) -> TestSuite:
    """A flip between pass and fail is a failure of its own; one that only doubts the measurement is skipped."""
    suite = TestSuite("repeats agree")
    for group in groups:
        case = TestCase(f"{group.title}: {len(group.runs)} repeats give one answer", classname="stability", time=0.0)
        said = f"unstable: {', '.join(group.answers)}"
        if {"pass", "fail"} <= set(group.answers):
            case.result = [Failure(said, "unstable")]
        elif group.unstable:
            case.result = [Skipped(said)]
        suite.add_testcase(case)
    suite.update_statistics()  # type: ignore[no-untyped-call]  # as above
    return suite


def ci_table(runs: Sequence[CiRun]) -> Table:
    """The summary for the terminal."""
    columns = ("drill", "engine", "answers", "", ">wall s", "why")
    return table("suite", columns, (cells for cells in _rows(runs)))


def ci_summary(suite: str, runs: Sequence[CiRun]) -> str:
    """The summary as Markdown, for a file or a CI system's job page."""
    lines = [f"# {suite}: {_headline(runs)}", "", "| drill | engine | answers | | wall s | why |", "|" + "---|" * 6]
    for cells in _rows(runs):
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    lines += ["", "| run | answer | folder |", "|---|---|---|"]
    lines += [f"| {run.title} | {run.answer} | {run.folder} |" for run in runs]
    return "\n".join(lines) + "\n"


def _headline(runs: Sequence[CiRun]) -> str:
    words = {0: "pass", 1: "fail", 3: "could not run everything", 4: "inconclusive"}
    return f"{words[exit_code(runs)]}, {len(runs)} runs" if runs else "no runs"


def _rows(runs: Sequence[CiRun]) -> Iterator[tuple[str, str, str, str, str, str]]:
    for group in grouped(runs):
        counts = [(answer, group.answers.count(answer)) for answer in dict.fromkeys(group.answers)]
        answers = ", ".join(
            answer if count == len(group.runs) == 1 else f"{count} {answer}" for answer, count in counts
        )
        why = next((run.reason for run in group.runs if run.reason), "")
        wall_s = sum(run.wall_s for run in group.runs)
        first = group.runs[0]
        yield first.drill, first.engine, answers, "unstable" if group.unstable else "", f"{wall_s:.1f}", why
