"""Campaigns, suites and reproductions say before they begin how long they take, and what is left as runs end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.commands.waiting import waiting
from hpn.scenarios.campaign import expected
from hpn.scenarios.campaign.campaign import carry_out
from hpn.scenarios.paper.reproduce import choose, wanted_of
from hpn.scenarios.run import wall_cost
from hpn.scenarios.run.runs_left import RunsLeft
from hpn.scenarios.run.wall_cost import Cost
from hpn.testbed.vm.engines import ENGINES, HOST
from tests.scenarios.campaign.samples import PLAN, result
from tests.scenarios.campaign.test_campaign import Pretended

VIRTUAL = ENGINES["uml-virtual-time"]


@dataclass
class Runs:
    """Runs on a clock that the test moves; ``told`` is what a user sees of them."""

    shares: dict[str, float]
    at: float = 1000.0
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = RunsLeft(self.shares, self.told.append, lambda: self.at)

    def after(self, seconds: float, run: str) -> None:
        self.at += seconds
        self.left.ended(run)


def test_what_is_left_goes_by_the_pace_of_the_work_that_is_done() -> None:
    runs = Runs({"a": 1.0, "b": 1.0, "long": 6.0})
    runs.after(20, "a")
    runs.after(20, "b")
    assert runs.told == ["2 of 3 have ended, about 2 min left"], "a quarter of the work took 40 s"
    runs.after(120, "long")
    assert len(runs.told) == 1, "nothing is left to be told of"


def test_what_is_under_way_side_by_side_counts() -> None:
    runs = Runs({"a": 1.0, "b": 1.1, "c": 1.0})
    runs.left.begun("a")
    runs.left.begun("b")
    runs.after(60, "a")
    runs.left.begun("c")
    assert runs.told == ["1 of 3 have ended, about 60 s left"], "b is about to end, c has yet to take its 60 s"
    runs.after(55, "c")
    assert runs.told[1:] == ["2 of 3 have ended, at least 1 s left"], "b is late, by half a minute"


def test_an_overdue_run_slows_the_pace() -> None:
    """The others were taken to be as fast as the one that had ended."""
    runs = Runs(dict.fromkeys("abcd", 1.0))
    runs.left.begun("a")
    runs.after(40, "a")
    runs.left.begun("b")
    runs.at += 80
    runs.left.begun("c")
    runs.after(40, "c")
    assert runs.told[-1] == "2 of 4 have ended, about 70 s left", "b is 80 s late, so that three took 200 s"


def test_it_is_told_at_most_every_30_s() -> None:
    runs = Runs(dict.fromkeys(map(str, range(100)), 1.0))
    for each in range(100):
        runs.after(5, str(each))
    assert [line.partition(" ")[0] for line in runs.told] == [str(each) for each in range(6, 100, 6)]
    assert runs.told[0] == "6 of 100 have ended, about 8 min left"


def test_what_is_over_within_a_minute_tells_nothing() -> None:
    runs = Runs({"a": 1.0, "b": 1.0, "c": 0.1})
    runs.after(20, "a")
    runs.after(12, "b")
    assert runs.told == []


NAMES = st.sampled_from("abcdefgh")


@given(st.dictionaries(NAMES, st.floats(0, 1e6)), st.lists(NAMES, max_size=20))
def test_runs_without_cost_or_name_break_nothing(shares: dict[str, float], ended: list[str]) -> None:
    at, told = [0.0], list[str]()
    left = RunsLeft(shares, told.append, lambda: at[0])
    for each in ended:
        at[0] += 40.0
        left.ended(each)
    assert all("inf" not in line and "nan" not in line for line in told)


@pytest.fixture
def _unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall_cost, "load", tuple)


@pytest.mark.usefixtures("_unmeasured")
def test_a_campaign_says_how_long_what_is_left_of_it_takes() -> None:
    here = expected.line_of(PLAN, tuple(range(200)), 2)
    assert here.startswith("200 sequences take about ")
    assert here.endswith(" (first guess, not measured here yet; shrinking comes on top)")
    assert expected.line_of(PLAN, tuple(range(4)), 2) == "", "less than a minute"
    assert expected.line_of(PLAN, (), 2) == ""


def test_what_guests_were_measured_to_take_counts_for_campaigns(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for times in (1.0, 30.0):
        costs = (Cost(VIRTUAL.name, "streams", times, times, 1.0),)
        monkeypatch.setattr(wall_cost, "load", lambda costs=costs: costs)
        found.append(expected.line_of(replace(PLAN, engine=VIRTUAL.name), tuple(range(40)), 1))
    assert found == [
        f"40 sequences take about {told} (measured on this machine; shrinking comes on top)"
        for told in ("2 min", "70 min")
    ]


def test_sequences_that_a_folder_has_are_not_waited_for(tmp_path: Path) -> None:
    assert expected.left_of(tmp_path / "new", 3) == (0, 1, 2)
    told: list[str] = []
    ended = expected.telling((0, 1, 2), 1, told.append)
    for entry in carry_out(tmp_path, PLAN, 2, Pretended(lambda sequence: sequence.index == 0)):
        ended(entry)  # a shrunk one counts for nothing
    assert told == []
    assert expected.left_of(tmp_path, 3) == (2,)


def test_a_lab_tells_of_its_sequences_together() -> None:
    at, told = [0.0], list[str]()
    ended = expected.telling(tuple(range(60)), 1, told.append, lambda: at[0])
    for index in range(20):
        at[0] += 200.0 if index % 10 == 0 else 0.0
        ended(replace(result(index=index), before=tuple(range(index - index % 10, index))))
    assert told == ["10 of 60 have ended, about 17 min left", "20 of 60 have ended, about 13 min left"]


@pytest.mark.usefixtures("_unmeasured")
def test_a_reproduction_says_how_long_its_runs_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waiting(wanted_of(choose([]), HOST.name, tmp_path, ()), 1)
    assert " runs take about " in capsys.readouterr().err
    waiting(wanted_of(choose(["pod-size"]), HOST.name, tmp_path, ()), 1)
    assert capsys.readouterr().err == "", "that one is computed"
