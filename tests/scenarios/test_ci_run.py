"""Running a suite: failures do not stop it, and every run ends in the reports, in the order of the suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pydantic import TypeAdapter

from hpn.results.export.ci_runs import CiRun, exit_code, grouped
from hpn.results.judge.repeats.judging import judge_repeats
from hpn.results.judge.verdict import Outcome, at_most, decide, holds
from hpn.results.page.runs_page import many_view
from hpn.results.run.folder import create
from hpn.results.run.manifest import Manifest
from hpn.scenarios.batch.pool.drills import DrillBody, body_from, task_for
from hpn.scenarios.batch.pool.task import OUTPUT, Task
from hpn.scenarios.batch.suite.schedule import in_order, run_suite, wanted_of, write_reports
from hpn.scenarios.batch.suite.suite import Run, Suite
from hpn.scenarios.drill import catalogue
from hpn.scenarios.run.remote_task import job_from
from tests.results.sample import MANIFEST
from tests.scenarios.pool.pretended import Makes, Pretended, asked, fails

_TRUTH = {Outcome.PASS: True, Outcome.FAIL: False, Outcome.INCONCLUSIVE: None}
MANIFEST_TYPE = TypeAdapter(Manifest)
DRILL = catalogue.load("link-down")
UML = "uml-virtual-time"


def runs(engine: str, *drills: str, repeats: int = 1) -> tuple[Run, ...]:
    named = [replace(DRILL, name=name) for name in drills]
    return tuple(Run(drill, engine, n, repeats) for drill in named for n in range(1, repeats + 1))


def suite(*wanted: Run, parallel: int | None = None) -> Suite:
    return Suite("nightly", "", parallel, wanted)


def judges(answer: Callable[[str, DrillBody], Outcome]) -> Makes:
    """A run with that answer, asked with its drill."""

    def make(task: Task, folder: Path) -> int:
        body = asked(task)
        made = create(folder / body.folder)
        made.write_manifest(replace(MANIFEST, drill=body.folder, engine=task.job.engine, repeat=body.repeat))
        verdict = decide([holds("it holds", _TRUTH[answer(body.folder, body)])])
        made.write_verdict(verdict)
        return verdict.exit_code

    return make


def on_engines(makes: Mapping[str, Makes]) -> Makes:
    return lambda task, folder: makes[task.job.engine](task, folder)


def finish(wanted: Suite, makes: Makes, out: Path) -> list[CiRun]:
    return list(run_suite(wanted, Pretended(makes), out))


def test_it_goes_on_after_failures_and_the_worst_answer_is_the_exit_code(tmp_path: Path) -> None:
    answers = {"a": Outcome.PASS, "b": Outcome.FAIL, "c": Outcome.INCONCLUSIVE}
    makes = {"host": judges(lambda drill, _: answers[drill]), "uml": fails(3, "hpn: no kernel here: apt install one")}
    found = finish(suite(*runs("uml", "a"), *runs("host", "a", "b", "c")), on_engines(makes), tmp_path)
    assert {run.title: run.answer for run in found} == {
        "a on uml": "error", "a on host": "pass", "b on host": "fail", "c on host": "inconclusive"
    }  # fmt: skip
    assert exit_code(grouped(found)) == 1
    assert exit_code(grouped(run for run in found if run.answer != "fail")) == 3
    assert exit_code(grouped(run for run in found if run.judged and run.answer != "fail")) == 4
    assert exit_code(grouped(run for run in found if run.answer == "pass")) == 0
    assert (tmp_path / "b.host" / "b" / "verdict.json").exists()


def measured(outages_ms: Sequence[float]) -> Makes:
    """A drill whose repeats measure these outages, the limit being 50 ms."""

    def make(task: Task, folder: Path) -> int:
        body = asked(task)
        made = create(folder / body.folder)
        made.write_manifest(replace(MANIFEST, drill=body.folder))
        verdict = decide([at_most("worst outage at most 50 ms", outages_ms[body.phase - 1], 50)])
        made.write_verdict(verdict)
        return verdict.exit_code

    return make


@pytest.mark.parametrize("outages_ms", [[20.0] * 12 + [90.0], [20.0, 90.0], [90.0] * 3])
def test_repeats_are_judged_as_drill_run_judges_them(tmp_path: Path, outages_ms: list[float]) -> None:
    found = finish(suite(*runs("host", "a", repeats=len(outages_ms))), measured(outages_ms), tmp_path)
    (group,) = grouped(found)
    alone = [run.judged.verdict for run in sorted(found, key=lambda run: run.repeat) if run.judged is not None]
    assert group.together == judge_repeats("a on host", alone)
    assert group.together is not None
    assert exit_code([group]) == group.together.verdict.exit_code


def test_one_bad_run_of_many_fails_a_drill_and_makes_it_unstable(tmp_path: Path) -> None:
    wanted = suite(*runs("host", "a", repeats=13))
    groups = grouped(finish(wanted, measured([20.0] * 12 + [90.0]), tmp_path))
    write_reports(tmp_path, wanted, groups)
    assert (exit_code(groups), groups[0].unstable) == (1, True)
    assert "| a | host | fail | 12 pass, 1 fail | unstable |" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "repeats.json").exists()


def test_a_drill_that_flips_is_unstable_with_both_answers_in_report_and_summary(tmp_path: Path) -> None:
    wanted = suite(*runs("host", "flips", "doubts", "steady", repeats=2))

    def answer(drill: str, body: DrillBody) -> Outcome:
        second = {"flips": Outcome.FAIL, "doubts": Outcome.INCONCLUSIVE, "steady": Outcome.PASS}
        return Outcome.PASS if body.phase == 1 else second[drill]

    write_reports(tmp_path, wanted, grouped(finish(wanted, judges(answer), tmp_path)))
    suites = {suite.get("name", ""): suite for suite in ElementTree.parse(tmp_path / "junit.xml").getroot()}
    together = {name: suites[name] for name in suites if "over 2 repeats" in name}
    assert list(together) == [f"{drill} on host over 2 repeats" for drill in ("flips", "doubts", "steady")]
    said = [[(c.get("name"), [r.tag for r in c]) for c in found.iter("testcase")] for found in together.values()]
    assert [dict(cases)["runs agree"] for cases in said] == [["skipped"], [], []]
    assert suites["flips on host over 2 repeats"].find(".//skipped").get("message") == "unstable: pass, fail"  # type: ignore[union-attr]  # else it fails here
    summary = (tmp_path / "summary.md").read_text()
    assert "| flips | host | fail | 1 pass, 1 fail | unstable |" in summary
    assert "| doubts | host | inconclusive | 1 pass, 1 inconclusive |  |" in summary
    assert "| steady | host | pass | 2 pass |  |" in summary
    assert "| 2 of 2 trusted runs pass: failure rate below 78 % at 95 % confidence |" in summary
    head = many_view(tmp_path, tmp_path / "report.html").head
    assert (head.title, head.outcome) == (wanted.name, "fail")
    assert head.answer == "No. 3 drills: 1 pass, 1 inconclusive, 1 fail."


def test_a_run_that_could_not_be_made_is_an_error_in_the_report(tmp_path: Path) -> None:
    wanted = suite(*runs("qemu", "a"))
    makes = fails(3, "hpn: engine qemu cannot run here: apt install qemu-system-x86")
    write_reports(tmp_path, wanted, grouped(finish(wanted, makes, tmp_path)))
    (case,) = ElementTree.parse(tmp_path / "junit.xml").getroot().iter("testcase")
    found = [(child.tag, "apt install" in child.get("message", "")) for child in case]
    assert found == [("error", True), ("system-out", False)]


@pytest.mark.parametrize(
    ("makes", "answer", "reason"),
    [
        (fails(3, "hpn: no bird here: apt install bird2"), "error", "no bird here: apt install bird2"),
        (fails(99, "something"), "error", "the run ended with code 99: something"),
        (fails(0), "error", "not a run folder"),
    ],
)
def test_a_command_that_brings_no_run_folder_is_an_error(
    tmp_path: Path, makes: Makes, answer: str, reason: str
) -> None:
    (found,) = finish(suite(*runs("host", "a")), makes, tmp_path)
    assert (found.answer, reason in found.reason) == (answer, True)
    assert (tmp_path / "a.host" / OUTPUT).exists()
    assert not (tmp_path / "a.host" / "a").exists()


@pytest.mark.parametrize(("code", "reported"), [(2, 2), (3, 3), (99, 3), (-9, 3)])
def test_the_exit_code_of_a_command_is_that_of_its_error(tmp_path: Path, code: int, reported: int) -> None:
    (found,) = finish(suite(*runs("host", "a")), fails(code), tmp_path)
    assert found.exit_code == reported


def test_a_repeat_that_could_not_be_made_is_told_beside_the_verdict_of_the_others(tmp_path: Path) -> None:
    def make(task: Task, folder: Path) -> int:
        if asked(task).phase == 1:
            return fails(3, "hpn: the guest died: \x1b[31mKernel panic")(task, folder)
        return judges(lambda *_: Outcome.PASS)(task, folder)

    wanted = suite(*runs("qemu", "a", repeats=4))
    groups = grouped(finish(wanted, make, tmp_path))
    write_reports(tmp_path, wanted, groups)
    assert (exit_code(groups), groups[0].answer, "the guest died" in groups[0].reason) == (3, "error", True)
    names = [found.get("name") for found in ElementTree.parse(tmp_path / "junit.xml").getroot()]
    assert names == ["a on qemu #1", "a on qemu #2", "a on qemu #3", "a on qemu #4", "a on qemu over 3 repeats"]


def told(run: Run, out: Path) -> DrillBody:
    """What the process of a run is told, on its way through a command line."""
    (wanted,) = wanted_of(suite(run), out).values()
    task = task_for(run.title, wanted.order, wanted.spec, wanted.tries, far=False)
    return body_from(job_from(task.job.command[-1]).body)


def test_a_process_is_told_how_often_a_run_may_be_tried(tmp_path: Path) -> None:
    assert told(Run(DRILL, "host", 1, 1, tries=4), tmp_path).tries == 4


def test_a_process_is_told_the_number_that_a_repeat_draws_its_phase_from(tmp_path: Path) -> None:
    run = Run(DRILL, "host", 2, 3)
    order = told(run, tmp_path).order()
    assert (order.phase, order.repeat, order.out) == (2, 0, Path("link-down"))
    assert told(replace(run, repeat=1), tmp_path).order().phase == 1


def test_the_manifest_of_a_run_of_a_suite_says_how_to_make_it_again() -> None:
    run = Run(DRILL, UML, 2, 3, tries=4)
    out = f"out/link-down.{UML}.2"
    expected = f"drill run --engine uml-virtual-time {DRILL.source} --out {out} --tries 4 --phase 2"
    assert " ".join(told(run, Path("out")).order().command) == expected


def test_a_command_that_could_say_nothing_is_inconclusive_not_an_error(tmp_path: Path) -> None:
    """Every queue pair died before the first fault: exit code 4, a manifest, and no verdict."""

    def make(task: Task, folder: Path) -> int:
        create(folder / "a").write_manifest(MANIFEST)
        return fails(4, "hpn: a: every queue pair died before the first fault")(task, folder)

    wanted = suite(*runs("host", "a"))
    found = finish(wanted, make, tmp_path)
    groups = grouped(found)
    assert (found[0].answer, exit_code(groups)) == ("inconclusive", 4)
    assert found[0].reason == "a: every queue pair died before the first fault"
    write_reports(tmp_path, wanted, groups)
    (case,) = ElementTree.parse(tmp_path / "junit.xml").getroot().iter("testcase")
    assert [child.tag for child in case] == ["skipped", "system-out"]
    assert case.findtext("system-out") == f"[[ATTACHMENT|{tmp_path / 'a.host' / 'output.txt'}]]", "what it printed"
    assert "# nightly: inconclusive" in (tmp_path / "summary.md").read_text()


def test_reports_have_the_order_of_the_suite_whichever_run_ends_first(tmp_path: Path) -> None:
    wanted = suite(*runs("uml", "slow", "quick", repeats=2))
    found = finish(wanted, judges(lambda *_: Outcome.PASS), tmp_path)
    reports = []
    for ended in (sorted(found, key=lambda run: run.title), sorted(found, key=lambda run: run.title, reverse=True)):
        write_reports(tmp_path, wanted, grouped(in_order(wanted, ended)))
        reports.append([part.get("name") for part in ElementTree.parse(tmp_path / "junit.xml").getroot()])
    assert reports[0] == reports[1]
    assert [name for name in reports[0] if name and "over" not in name] == [run.title for run in wanted.runs]
    assert [run.drill for run in in_order(wanted, found[:1])] == [found[0].drill], "an interrupted suite"
