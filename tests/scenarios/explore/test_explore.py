"""``hpn explore`` from end to end, on a pretended lab: what it tries, finds, makes small, keeps and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hpn import cli
from hpn.commands import explore
from hpn.scenarios.batch.pool.task import Pool
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.model import Drill
from tests.scenarios.explore.pretended import PretendedRuns
from tests.scenarios.pool.pretended import Pretended

Explored = Callable[..., Result]
OTHER = "p0.s0.h0.r0.1"


def after_the_lag(drill: Drill) -> bool:
    """A defect: the other port is cut within 100 ms of the first, and later than the LAG was rewritten."""
    cuts = {planned.fault.target: planned.at_ns for planned in drill.timeline.faults}
    return OTHER in cuts and "p0.s0.h0.r0.0" in cuts and 0 < cuts[OTHER] - cuts["p0.s0.h0.r0.0"] < 100_000_000


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Explored:
    monkeypatch.chdir(tmp_path)

    def explored(runs: PretendedRuns, *arguments: str) -> Result:
        @contextmanager
        def pool(*_given: object) -> Iterator[Pool]:
            yield Pretended(runs)

        monkeypatch.setattr(explore, "pool_for", pool)
        return CliRunner().invoke(
            cli.command_line, ["explore", "link-down", *arguments], prog_name="hpn", standalone_mode=False
        )

    return explored


def _answer(at: str = "explore-out") -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = json.loads(Path(at, "answer.json").read_text())
    return found


def test_a_lab_that_is_right_holds_at_every_place(run: Explored) -> None:
    ended = run(PretendedRuns())
    assert ended.return_value == 0, ended.output
    rows = _answer()["rows"]
    assert {row["told"] for row in rows} == {"holds"}
    assert {row["phase"] for row in rows} == {"", "failure", "repair"}
    assert "nothing broke an invariant" in ended.output
    assert "same state as before" in ended.output


def test_what_two_faults_break_together_becomes_a_small_drill(run: Explored) -> None:
    ended = run(PretendedRuns(after_the_lag), "--seconds", "other-port")
    assert ended.return_value == 1
    (found,) = _answer()["found"]
    drill = load_drill(Path("explore-out", str(found["file"])))
    assert {planned.fault.target for planned in drill.timeline.faults} == {"p0.s0.h0.r0.0", OTHER}
    assert after_the_lag(drill)
    assert found["repeats"] is True
    assert found["broken"] == ["state restored"]


def test_what_the_second_fault_breaks_alone_is_said_so(run: Explored) -> None:
    ended = run(PretendedRuns(lambda drill: any(p.fault.target == OTHER for p in drill.timeline.faults)))
    assert ended.return_value == 1
    told = {row["second"]: row["told"] for row in _answer()["rows"]}
    assert told["other-port"] == "breaks alone"
    first = _answer()["found"][0]
    assert first["faults"] == f"link-down of {OTHER}"


def test_the_same_command_goes_on_with_what_is_left(run: Explored) -> None:
    first = PretendedRuns()
    run(first, "--seconds", "other-port", "--most", "3")
    assert len(first.made) == 1 + 1 + 3, "base, alone, three places"
    more = PretendedRuns()
    run(more, "--seconds", "other-port", "--most", "5")
    assert len(more.made) == 2
    assert not {*more.made} & {*first.made}


def test_with_first_nothing_more_is_run_once_something_breaks(run: Explored) -> None:
    runs = PretendedRuns(after_the_lag)
    ended = run(runs, "--first", "--seconds", "other-port")
    assert ended.return_value == 1
    assert "waiting" in {row["told"] for row in _answer()["rows"]}


def test_a_run_that_is_not_the_base_run_until_its_second_fault_is_no_answer(run: Explored) -> None:
    ended = run(PretendedRuns(shift=lambda drill: 256 if len(drill.timeline.faults) > 1 else 0), "--most", "8")
    assert ended.return_value == 4
    places = [row for row in _answer()["rows"] if row["phase"]]
    assert {row["told"] for row in places if row["second"] != "early-return"} == {"diverged"}


def test_what_breaks_is_told_though_its_run_diverged_and_so_is_that(run: Explored) -> None:
    late = PretendedRuns(after_the_lag, shift=lambda drill: 256 if len(drill.timeline.faults) > 1 else 0)
    ended = run(late, "--seconds", "other-port")
    assert ended.return_value == 1
    assert any(row["told"] == "breaks" and row["diverged"] for row in _answer()["rows"])
    assert "error of determinism in" in ended.output


def test_a_base_run_that_fails_is_refused_with_the_reason(run: Explored) -> None:
    runs = PretendedRuns(lambda _drill: True)
    ended = run(runs)
    assert runs.made == ["link-down"]
    assert "link-down by itself ends with fail" in str(ended.exception)
    assert "planted" in str(ended.exception)


def test_a_folder_of_another_drill_or_with_other_files_is_refused(run: Explored) -> None:
    run(PretendedRuns(), "--most", "1")
    ended = CliRunner().invoke(
        cli.command_line, ["explore", "tor-crash", "--most", "1"], prog_name="hpn", standalone_mode=False
    )
    assert "holds an exploration of another drill" in str(ended.exception)
    Path("other").mkdir()
    Path("other", "mine.txt").write_text("")
    assert "holds no exploration" in str(run(PretendedRuns(), "--out", "other").exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seconds", "other-prt"), "no such second fault; did you mean other-port"),
        (("--seconds", ","), "--seconds names nothing"),
        (("--most", "0"), "0 is not in the range"),
        (("--engine", "host"), "'host' is not"),
    ],
)
def test_wrong_options_are_refused(run: Explored, arguments: tuple[str, ...], said: str) -> None:
    ended = run(PretendedRuns(), *arguments)
    assert ended.exception is not None
    assert said in f"{ended.output}{ended.exception}"


def test_a_drill_without_a_fault_is_refused_with_its_line(run: Explored) -> None:
    ended = CliRunner().invoke(
        cli.command_line, ["explore", "healthy-baseline"], prog_name="hpn", standalone_mode=False
    )
    assert "healthy-baseline.yaml:" in str(ended.exception)
    assert "has no fault" in str(ended.exception)
