"""`hpn drill run --repeat`: each run's verdict is shown, the judgement over all of them gives file and exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from junitparser import JUnitXml

from hpn import cli
from hpn.failover.analysis.model import DrillMetrics, Relation
from hpn.results.judge.verdict import Outcome
from hpn.results.run.folder import RunFolder, create
from hpn.results.run.progress import Progress
from hpn.scenarios.batch.pool.task import Begun, Done, Task, unheard
from hpn.scenarios.batch.suite.schedule import run_suite
from hpn.scenarios.batch.suite.suite import Run, Suite, load_suite
from hpn.scenarios.drill import catalogue
from hpn.scenarios.expect.evidence import RunFacts
from hpn.scenarios.expect.verdict import judge
from hpn.scenarios.run import calibrate, repeats, session
from hpn.scenarios.run.run_order import Batch, Order
from hpn.testbed.errors import InputError
from hpn.testbed.vm.engines import ENGINES
from tests.results.sample import MANIFEST, repeats_from
from tests.scenarios.pool.pretended import Pretended, fails, here

from .measured import FAILURE, REPAIR, at_edge, flow, link_down, metrics

DRILL = """
drill: cut
summary: one link is cut
topology: tiny
timeline:
  faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 2 s}]
expect:
  - worst_outage: {below: 50 ms}
"""

Runner = Callable[[Order, Callable[[Progress], None]], RunFolder]


def runner(measured: Sequence[DrillMetrics], facts: Sequence[RunFacts]) -> Runner:
    """What ``session.run`` would leave behind, run after run."""
    made = iter(zip(measured, facts, strict=True))

    def run(order: Order, _listen: Callable[[Progress], None]) -> RunFolder:
        metrics, fact = next(made)
        folder = create(order.out)
        folder.write_manifest(replace(MANIFEST, drill=order.drill.name, repeat=order.repeat))
        folder.write_metrics(metrics)
        folder.write_verdict(judge(order.drill, metrics, fact))
        return folder

    return run


def drill_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver_ms: Sequence[int], starved: int = 0) -> int:
    """The exit code of runs in which the receiving flow was out that long, the first ``starved`` on a busy machine."""
    facts = [RunFacts(("the CPUs were 99 % busy",) if n < starved else (), 0, ()) for n in range(len(receiver_ms))]
    monkeypatch.setattr(session, "run", runner([link_down(receiver=ms) for ms in receiver_ms], facts))
    monkeypatch.setattr(calibrate, "check", lambda *_: None)
    (tmp_path / "cut.yaml").write_text(DRILL)
    arguments = ["drill", "run", str(tmp_path / "cut.yaml"), "--repeat", str(len(receiver_ms))]
    arguments += ["--out", str(tmp_path / "out"), "--junit", str(tmp_path / "junit.xml")]
    arguments += ["--summary", str(tmp_path / "summary.md")]
    code = cli.command_line.main(arguments, prog_name="hpn", standalone_mode=False)
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize(
    ("receiver_ms", "starved", "code"),
    [
        ([20] * 9 + [900], 0, 1),  # one run fails; the median is far from the limit
        ([20] * 61 + [900] * 39, 0, 1),
        ([80] * 4, 0, 1),
        ([20, 80, 20, 80], 0, 1),
        ([20] * 6, 2, 0),
        ([20] * 6, 3, 4),
        ([900, 20, 20, 20, 20, 20], 1, 0),
    ],
)
def test_the_exit_code_is_that_of_all_runs_together(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    receiver_ms: Sequence[int],
    starved: int,
    code: int,
) -> None:
    assert drill_run(tmp_path, monkeypatch, receiver_ms, starved) == code
    (found,) = repeats_from((tmp_path / "out" / repeats.FILE).read_bytes())
    assert (found.outcome.exit_code, found.left_out, len(found.answers)) == (code, starved, len(receiver_ms))
    said = capsys.readouterr().out
    assert said.count("run folder: ") == len(receiver_ms)
    assert f"cut over {len(receiver_ms)} repeats" in said
    page = tmp_path / "out" / "report.html"
    assert f"page over all runs: {page}" in said
    assert (
        f"<title>{found.outcome.value.upper()}: cut on host over {len(receiver_ms)} repeats</title>" in page.read_text()
    )
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith(f"# hpn drill run: {found.outcome.value}, {len(receiver_ms)} runs\n")
    assert f"`{tmp_path / 'out'}" in summary or found.answers.count(Outcome.PASS) == len(found.answers)
    names = [suite.name for suite in JUnitXml.fromfile(str(tmp_path / "junit.xml"))]
    assert names == [*(f"cut #{n}" for n in range(1, len(receiver_ms) + 1)), f"cut over {len(receiver_ms)} repeats"]


def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, drill: str, runs: Sequence[DrillMetrics]) -> list[str]:
    """What the command is called with to make these runs."""
    monkeypatch.setattr(session, "run", runner(runs, [RunFacts(state_differences=())] * len(runs)))
    monkeypatch.setattr(calibrate, "check", lambda *_: None)
    monkeypatch.setenv("COLUMNS", "400")  # no line is broken, whatever the terminal the tests are run in
    (tmp_path / "cut.yaml").write_text(drill)
    return ["drill", "run", str(tmp_path / "cut.yaml"), "--repeat", str(len(runs)), "--out", str(tmp_path / "out")]


def test_queue_pairs_that_die_in_39_of_100_runs_fail_a_drill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The median is no death at all."""
    drill = DRILL.replace("worst_outage: {below: 50 ms}", "queue_pair_deaths: {at_most: 0}")
    dead = metrics(
        (FAILURE, REPAIR),
        (flow("rx", at_edge("rx", Relation.RECEIVER, 40, died=True), at_edge("rx", Relation.RECEIVER), dst="n"),),
    )
    arguments = planted(monkeypatch, tmp_path, drill, [link_down(), dead, *[link_down()] * 60, *[dead] * 38])
    assert cli.command_line.main(arguments, prog_name="hpn", standalone_mode=False) == Outcome.FAIL.exit_code
    said = capsys.readouterr().out
    assert "FAIL  cut over 100 repeats: 61 pass, 39 fail; UNSTABLE" in said
    assert "61 of 100 trusted runs pass: failure rate below 48 % at 95 % confidence (one-sided exact binomial)" in said
    (found,) = repeats_from((tmp_path / "out" / repeats.FILE).read_bytes())
    assert (found.estimates[0].kept, found.estimates[0].worst_run, found.estimates[0].median) == (61, 2, 0.0)


def test_ten_of_ten_prove_a_failure_rate_below_26_percent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = planted(monkeypatch, tmp_path, DRILL, [link_down()] * 10)
    assert cli.command_line.main(arguments, prog_name="hpn", standalone_mode=False) == 0
    assert "10 of 10 trusted runs pass: failure rate below 26 % at 95 % confidence" in capsys.readouterr().out


class LastFirst(Pretended):
    """Tasks end in the reverse of their order."""

    def run(self, tasks: Iterable[Task], on_start: Begun = unheard) -> Iterator[Done]:
        return super().run(reversed(list(tasks)), on_start)


def test_runs_of_a_pool_are_judged_and_reported_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever ends first: the last one, whose flow was out for longest, ends first here."""
    arguments = planted(monkeypatch, tmp_path, DRILL, [link_down(receiver=ms) for ms in (80, 30, 20)])
    monkeypatch.setattr("hpn.commands.drill.pool_for", lambda *_: LastFirst(here))
    arguments += ["--jobs", "2", "--junit", str(tmp_path / "junit.xml")]
    assert cli.command_line.main(arguments, prog_name="hpn", standalone_mode=False) == 1
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("starting ")] == [
        f"starting cut-{number}" for number in (3, 2, 1)
    ]
    (found,) = repeats_from((tmp_path / "out" / repeats.FILE).read_bytes())
    assert found.answers == (Outcome.PASS, Outcome.PASS, Outcome.FAIL)
    names = [suite.name for suite in JUnitXml.fromfile(str(tmp_path / "junit.xml"))]
    assert names == ["cut #1", "cut #2", "cut #3", "cut over 3 repeats"]


def test_a_pool_that_cannot_make_a_run_is_told_as_this_machine_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = planted(monkeypatch, tmp_path, DRILL, [link_down()])
    monkeypatch.setattr("hpn.commands.drill.pool_for", lambda *_: Pretended(fails(3, "hpn: no bird here")))
    assert cli.command_line.main([*arguments, "--jobs", "2"], prog_name="hpn", standalone_mode=False) == 3
    assert "hpn: cut: no bird here" in capsys.readouterr().err
    (tmp_path / "out" / "cut").mkdir(parents=True)
    (tmp_path / "out" / "cut" / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="not a run folder"):
        cli.command_line.main([*arguments, "--jobs", "2"], prog_name="hpn", standalone_mode=False)


STATISTIC = DRILL.replace("below: 50 ms", "below: 50 ms, over_repeats: median")


@pytest.mark.parametrize(("receiver_ms", "code"), [([20] * 9 + [900], 0), ([80] * 9 + [20], 1), ([20, 80] * 3, 4)])
def test_a_drill_may_ask_for_the_median_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver_ms: Sequence[int], code: int
) -> None:
    arguments = planted(monkeypatch, tmp_path, STATISTIC, [link_down(receiver=ms) for ms in receiver_ms])
    assert cli.command_line.main(arguments, prog_name="hpn", standalone_mode=False) == code


@pytest.mark.parametrize(("statistic", "repeat", "least"), [("median", 1, 5), ("median", 4, 5), ("p95", 58, 59)])
def test_a_statistic_of_too_few_runs_is_refused_before_any_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statistic: str, repeat: int, least: int
) -> None:
    arguments = planted(monkeypatch, tmp_path, STATISTIC.replace("median", statistic), [link_down()] * repeat)
    with pytest.raises(
        InputError, match=rf"cut.yaml:8: .*takes {least} repeats or more .*not {repeat}; write --repeat"
    ):
        cli.command_line.main(arguments, prog_name="hpn", standalone_mode=False)
    assert not (tmp_path / "out").exists()


def test_a_run_of_a_suite_is_one_of_many_and_no_statistic_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(monkeypatch, tmp_path, STATISTIC, [link_down()])
    run = Run(catalogue.load(str(tmp_path / "cut.yaml")), "host", 3, 5)
    (found,) = run_suite(Suite("s", "", None, (run,)), Pretended(here), tmp_path / "out")
    assert found.answer == "pass"
    assert (tmp_path / "out" / "cut.host.3" / "cut" / "verdict.json").exists()


def test_a_suite_that_asks_for_too_few_runs_of_a_statistic_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.yaml").write_text(STATISTIC)
    (tmp_path / "suite.yaml").write_text("suite: s\nruns:\n  - drills: [./cut.yaml]\n    repeats: 4\n")
    with pytest.raises(
        InputError, match=r"suite.yaml:3: drill cut: .*takes 5 repeats or more .*not 4; raise 'repeats'"
    ):
        load_suite(tmp_path / "suite.yaml", ENGINES)


def test_one_run_is_judged_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drill_run(tmp_path, monkeypatch, [80]) == Outcome.FAIL.exit_code
    assert not (tmp_path / "out" / repeats.FILE).exists()


def test_runs_made_before_an_interrupt_are_judged_too(tmp_path: Path) -> None:
    drills = [catalogue.load("link-down"), catalogue.load("link-flap")]
    batch = Batch(drills, 3, tmp_path, ("hpn",))
    run = runner([link_down()] * 4, [RunFacts(state_differences=())] * 4)
    made = [run(order, lambda _news: None) for order, _ in zip(batch.orders(), range(4), strict=False)]
    assert [(each.drill, len(each.answers)) for each in repeats.judge(batch, made)] == [
        ("link-down", 3),
        ("link-flap", 1),
    ]
