"""`hpn drill run --repeat`: each run's verdict is shown, the judgement over all of them gives file and exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from junitparser import JUnitXml

import cli
from failover.model import DrillMetrics
from results.folder import RunFolder, create
from results.progress import Progress
from results.repeats import repeats_from
from results.verdict import Outcome
from scenarios import calibrate, library, repeats, session
from scenarios.order import Batch, Order
from scenarios.verdict import RunFacts, judge
from tests.results.sample import MANIFEST

from .measured import link_down

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
    code = cli.commands.main(arguments, prog_name="hpn", standalone_mode=False)
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize(
    ("receiver_ms", "starved", "code"),
    [
        ([20] * 9 + [900], 0, 0),  # one run fails; the median holds
        ([80] * 4, 0, 1),
        ([20, 80, 20, 80], 0, 4),
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
    names = [suite.name for suite in JUnitXml.fromfile(str(tmp_path / "junit.xml"))]
    assert names == [*(f"cut #{n}" for n in range(1, len(receiver_ms) + 1)), f"cut over {len(receiver_ms)} repeats"]


def test_one_run_is_judged_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drill_run(tmp_path, monkeypatch, [80]) == Outcome.FAIL.exit_code
    assert not (tmp_path / "out" / repeats.FILE).exists()


def test_runs_made_before_an_interrupt_are_judged_too(tmp_path: Path) -> None:
    drills = [library.load("link-down"), library.load("link-flap")]
    batch = Batch(drills, 3, tmp_path, ("hpn",))
    run = runner([link_down()] * 4, [RunFacts(state_differences=())] * 4)
    made = [run(order, lambda _news: None) for order, _ in zip(batch.orders(), range(4), strict=False)]
    assert [(each.drill, len(each.answers)) for each in repeats.judge(batch, made)] == [
        ("link-down", 3),
        ("link-flap", 1),
    ]
