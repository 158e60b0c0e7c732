"""Running a suite: failures do not stop it, cores are not shared, and every run ends in the reports."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

import pytest
from pydantic import TypeAdapter

from results.ci import CiRun, exit_code, grouped
from results.repeats.together import judge_repeats
from results.run.folder import RunFolder, create
from results.run.manifest import Manifest
from results.verdict import Outcome, at_most, decide, holds
from scenarios.drill import catalogue
from scenarios.run.job import job_from
from scenarios.run.order import Batch
from scenarios.suite.schedule import EngineSlot, in_order, in_process, run_suite, write_reports
from scenarios.suite.slots import batch_from, job_for
from scenarios.suite.suite import Run, Suite
from testbed.errors import MachineError
from testbed.vm.engines import HOST, EngineSpec, named
from tests.results.sample import MANIFEST

_TRUTH = {Outcome.PASS: True, Outcome.FAIL: False, Outcome.INCONCLUSIVE: None}
WAIT_S = 20
MANIFEST_TYPE = TypeAdapter(Manifest)


def runs(engine: str, *drills: str, repeats: int = 1) -> tuple[Run, ...]:
    return tuple(Run(d, Path(f"/{d}.yaml"), engine, n, repeats) for d in drills for n in range(1, repeats + 1))


def suite(*wanted: Run, parallel: int | None = None) -> Suite:
    return Suite("nightly", "", parallel, wanted)


def judge(run: Run, folder: Path, outcome: Outcome) -> RunFolder:
    made = create(folder / run.drill)
    made.write_manifest(replace(MANIFEST, drill=run.drill, engine=run.engine, repeat=run.repeat))
    made.write_verdict(decide([holds("it holds", _TRUTH[outcome])]))
    return made


def engine(answer: Callable[[Run], Outcome], cores: int = 1) -> EngineSlot:
    return EngineSlot(cores, lambda run, folder: judge(run, folder, answer(run)))


def finish(wanted: Suite, engines: dict[str, EngineSlot], out: Path, cores: int = 2) -> list[CiRun]:
    return list(run_suite(wanted, engines, out, cores=cores))


def test_it_goes_on_after_failures_and_the_worst_answer_is_the_exit_code(tmp_path: Path) -> None:
    def broken(_run: Run, _folder: Path) -> RunFolder:
        raise MachineError("no kernel here: apt install one")

    answers = {"a": Outcome.PASS, "b": Outcome.FAIL, "c": Outcome.INCONCLUSIVE}
    engines = {"host": engine(lambda run: answers[run.drill]), "uml": EngineSlot(1, broken)}
    found = finish(suite(*runs("uml", "a"), *runs("host", "a", "b", "c")), engines, tmp_path)
    assert {run.title: run.answer for run in found} == {
        "a on uml": "error", "a on host": "pass", "b on host": "fail", "c on host": "inconclusive"
    }  # fmt: skip
    assert exit_code(grouped(found)) == 1
    assert exit_code(grouped(run for run in found if run.answer != "fail")) == 3
    assert exit_code(grouped(run for run in found if run.judged and run.answer != "fail")) == 4
    assert exit_code(grouped(run for run in found if run.answer == "pass")) == 0
    assert (tmp_path / "b.host" / "b" / "verdict.json").exists()


def measured(outages_ms: Sequence[float]) -> EngineSlot:
    """A drill whose repeats measure these outages, the limit being 50 ms."""

    def run(wanted: Run, folder: Path) -> RunFolder:
        made = create(folder / wanted.drill)
        made.write_manifest(replace(MANIFEST, drill=wanted.drill))
        made.write_verdict(decide([at_most("worst outage at most 50 ms", outages_ms[wanted.repeat - 1], 50)]))
        return made

    return EngineSlot(1, run)


@pytest.mark.parametrize("outages_ms", [[20.0] * 12 + [90.0], [20.0, 90.0], [90.0] * 3])
def test_repeats_are_judged_as_drill_run_judges_them(tmp_path: Path, outages_ms: list[float]) -> None:
    found = finish(suite(*runs("host", "a", repeats=len(outages_ms))), {"host": measured(outages_ms)}, tmp_path)
    (group,) = grouped(found)
    alone = [run.judged.verdict for run in sorted(found, key=lambda run: run.repeat) if run.judged is not None]
    assert group.together == judge_repeats("a on host", alone)
    assert group.together is not None
    assert exit_code([group]) == group.together.verdict.exit_code


def test_one_bad_run_of_many_fails_a_drill_and_makes_it_unstable(tmp_path: Path) -> None:
    wanted = suite(*runs("host", "a", repeats=13))
    groups = grouped(finish(wanted, {"host": measured([20.0] * 12 + [90.0])}, tmp_path))
    write_reports(tmp_path, wanted, groups)
    assert (exit_code(groups), groups[0].unstable) == (1, True)
    assert "| a | host | fail | 12 pass, 1 fail | unstable |" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "repeats.json").exists()


def test_a_drill_that_flips_is_unstable_with_both_answers_in_report_and_summary(tmp_path: Path) -> None:
    wanted = suite(*runs("host", "flips", "doubts", "steady", repeats=2))

    def answer(run: Run) -> Outcome:
        second = {"flips": Outcome.FAIL, "doubts": Outcome.INCONCLUSIVE, "steady": Outcome.PASS}
        return Outcome.PASS if run.repeat == 1 else second[run.drill]

    write_reports(tmp_path, wanted, grouped(finish(wanted, {"host": engine(answer)}, tmp_path)))
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


def test_a_run_that_could_not_be_made_is_an_error_in_the_report(tmp_path: Path) -> None:
    def broken(_run: Run, _folder: Path) -> RunFolder:
        raise MachineError("engine qemu cannot run here: apt install qemu-system-x86")

    wanted = suite(*runs("qemu", "a"))
    write_reports(tmp_path, wanted, grouped(finish(wanted, {"qemu": EngineSlot(1, broken)}, tmp_path)))
    (case,) = ElementTree.parse(tmp_path / "junit.xml").getroot().iter("testcase")
    assert [(child.tag, "apt install" in child.get("message", "")) for child in case] == [("error", True)]


def test_runs_share_the_machine_only_as_far_as_its_cores_go(tmp_path: Path) -> None:
    lock, busy, most, both = threading.Lock(), [0], [0], threading.Barrier(2)

    def make(cores: int, meet: bool) -> EngineSlot:
        def run(wanted: Run, folder: Path) -> RunFolder:
            with lock:
                busy[0] += cores
                most[0] = max(most[0], busy[0])
            if meet:
                both.wait(WAIT_S)  # BrokenBarrierError unless two of these run side by side
            with lock:
                busy[0] -= cores
            return judge(wanted, folder, Outcome.PASS)

        return EngineSlot(0 if cores == 2 else cores, run)

    wanted = suite(*runs("host", "a", "b"), *runs("uml", "a", "b"))
    found = finish(wanted, {"host": make(2, False), "uml": make(1, True)}, tmp_path)
    assert [run.answer for run in found] == ["pass"] * 4
    assert most == [2]


def test_parallel_bounds_it_further(tmp_path: Path) -> None:
    started: list[str] = []
    iterator = run_suite(
        suite(*runs("uml", "a", "b"), parallel=1),
        {"uml": engine(lambda _run: Outcome.PASS)},
        tmp_path,
        lambda run: started.append(run.drill),
        cores=8,
    )
    next(iterator)
    assert started == ["a"]
    assert [run.drill for run in iterator] == ["b"]


def process(script: str) -> EngineSlot:
    """An engine whose runs are this script, which is told the folder."""

    def start(_wanted: Run, folder: Path, output: IO[bytes]) -> int:
        command = [sys.executable, "-c", script, str(folder)]
        return subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode

    return EngineSlot(1, in_process(start))


@pytest.mark.parametrize(
    ("script", "answer", "reason"),
    [
        (
            "print('hpn: no bird here: apt install bird2'); raise SystemExit(3)",
            "error",
            "no bird here: apt install bird2",
        ),
        ("print('something'); raise SystemExit(99)", "error", "the run ended with code 99: something"),
        ("raise SystemExit(0)", "error", "not a run folder"),
    ],
)
def test_a_command_that_brings_no_run_folder_is_an_error(tmp_path: Path, script: str, answer: str, reason: str) -> None:
    slot = process(script)
    (found,) = finish(suite(*runs("host", "a")), {"host": slot}, tmp_path)
    assert (found.answer, reason in found.reason) == (answer, True)
    assert (tmp_path / "a.host" / "output.txt").exists()


@pytest.mark.parametrize(("code", "reported"), [(2, 2), (3, 3), (99, 3), (-9, 3)])
def test_the_exit_code_of_a_command_is_that_of_its_error(tmp_path: Path, code: int, reported: int) -> None:
    end = f"raise SystemExit({code})" if code >= 0 else f"import os; os.kill(os.getpid(), {-code})"
    slot = process(end)
    (found,) = finish(suite(*runs("host", "a")), {"host": slot}, tmp_path)
    assert found.exit_code == reported


def test_a_repeat_that_could_not_be_made_is_told_beside_the_verdict_of_the_others(tmp_path: Path) -> None:
    def run(wanted: Run, folder: Path) -> RunFolder:
        if wanted.repeat == 1:
            raise MachineError("the guest died: \x1b[31mKernel panic")
        return judge(wanted, folder, Outcome.PASS)

    wanted = suite(*runs("qemu", "a", repeats=4))
    groups = grouped(finish(wanted, {"qemu": EngineSlot(1, run)}, tmp_path))
    write_reports(tmp_path, wanted, groups)
    assert (exit_code(groups), groups[0].answer, "the guest died" in groups[0].reason) == (3, "error", True)
    names = [found.get("name") for found in ElementTree.parse(tmp_path / "junit.xml").getroot()]
    assert names == ["a on qemu #1", "a on qemu #2", "a on qemu #3", "a on qemu #4", "a on qemu over 3 repeats"]


def told(wanted: Run, folder: Path, spec: EngineSpec = HOST) -> Batch:
    """What the process of a run makes of what it is told, on its way through a command line."""
    return batch_from(job_from(job_for(spec, wanted, folder).command[-1]).body)


def test_a_process_is_told_how_often_a_run_may_be_tried(tmp_path: Path) -> None:
    run = Run("link-down", catalogue.find("link-down"), "host", 1, 1, tries=4)
    assert told(run, tmp_path).tries == 4


def test_a_process_is_told_the_number_that_a_repeat_draws_its_phase_from(tmp_path: Path) -> None:
    run = Run("link-down", catalogue.find("link-down"), "host", 2, 3)
    (order,) = told(run, tmp_path).orders()
    assert (order.phase, order.repeat, order.out) == (2, 0, tmp_path / "link-down")
    (first,) = told(replace(run, repeat=1), tmp_path).orders()
    assert first.phase == 1


def test_the_manifest_of_a_run_of_a_suite_says_how_to_make_it_again(tmp_path: Path) -> None:
    run = Run("link-down", catalogue.find("link-down"), "uml-virtual-time", 2, 3, tries=4)
    command = told(run, Path("out"), named(run.engine)).command
    assert " ".join(command) == f"drill run --engine uml --virtual-time {run.file} --out out --tries 4 --phase 2"


def test_a_command_that_could_say_nothing_is_inconclusive_not_an_error(tmp_path: Path) -> None:
    """Every queue pair died before the first fault: exit code 4, a manifest, and no verdict."""
    manifest = MANIFEST_TYPE.dump_json(MANIFEST).decode()
    script = f"""import pathlib, sys
folder = pathlib.Path(sys.argv[1]) / 'a'
folder.mkdir(parents=True)
(folder / 'manifest.json').write_text({manifest!r})
print('hpn: a: every queue pair died before the first fault')
raise SystemExit(4)"""
    slot = process(script)
    wanted = suite(*runs("host", "a"))
    found = finish(wanted, {"host": slot}, tmp_path)
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
    found = finish(wanted, {"uml": engine(lambda _run: Outcome.PASS)}, tmp_path)
    reports = []
    for ended in (sorted(found, key=lambda run: run.title), sorted(found, key=lambda run: run.title, reverse=True)):
        write_reports(tmp_path, wanted, grouped(in_order(wanted, ended)))
        reports.append([part.get("name") for part in ElementTree.parse(tmp_path / "junit.xml").getroot()])
    assert reports[0] == reports[1]
    assert [name for name in reports[0] if name and "over" not in name] == [run.title for run in wanted.runs]
    assert [run.drill for run in in_order(wanted, found[:1])] == [found[0].drill], "an interrupted suite"


def test_jobs_bound_a_suite_whatever_it_says_itself(tmp_path: Path) -> None:
    started: list[str] = []
    wanted = suite(*runs("uml", "a", "b", "c"), parallel=3)
    slots = {"uml": engine(lambda _run: Outcome.PASS)}
    iterator = run_suite(wanted, slots, tmp_path, lambda run: started.append(run.drill), cores=8, jobs=1)
    next(iterator)
    assert started == ["a"]
    assert len(list(iterator)) == 2
