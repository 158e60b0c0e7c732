"""Runs that cannot be trusted are made again, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.judge.verdict import Check, Outcome, Verdict, at_most
from hpn.results.run.folder import RunFolder, create
from hpn.results.run.manifest import Manifest
from hpn.scenarios.run.engines import tried
from hpn.testbed.errors import InputError

STARVED = Verdict(Outcome.INCONCLUSIVE, (), ("the host was starved",))
CLOSE = Verdict(Outcome.INCONCLUSIVE, (at_most("worst outage", 49.0, 50.0, low=47.0, high=51.0),), ())
PAUSED = Check("plane 1 untouched", Outcome.INCONCLUSIVE, None, 0, evidence="its sender paused 23.5 ms")
UNMEASURED = Verdict(Outcome.INCONCLUSIVE, (PAUSED,), ())
PASS = Verdict(Outcome.PASS, (), ())
FAIL = Verdict(Outcome.FAIL, (PAUSED, Check("state restored", Outcome.FAIL)), ())


class Runs:
    """Makes run folders with the given verdicts, one after the other, all in the same place."""

    def __init__(self, path: Path, *verdicts: Verdict) -> None:
        self.path = path
        self.left = list(verdicts)
        self.told: list[str] = []

    def make(self) -> RunFolder:
        run = create(self.path)
        run.write_manifest(Manifest("cut", "tiny", "hpn", (), "host", "nft", "6.18", "", len(self.left)))
        run.write_verdict(self.left.pop(0))
        return run

    def tried(self, tries: int) -> RunFolder:
        return tried(self.make, tries, self.told.append)


@pytest.mark.parametrize("answer", [PASS, FAIL, CLOSE], ids=["pass", "fail", "too near to the limit"])
def test_an_answer_is_never_asked_for_again(tmp_path: Path, answer: Verdict) -> None:
    runs = Runs(tmp_path / "cut", answer, PASS)
    assert runs.tried(3).verdict() == answer
    assert (runs.left, runs.told) == ([PASS], [])


def test_a_doubtful_run_is_kept_beside_the_one_that_took_its_place(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "cut", STARVED, STARVED, PASS)
    found = runs.tried(3)
    assert (found.path, found.verdict(), found.manifest().attempt) == (tmp_path / "cut", PASS, 3)
    kept = [RunFolder(tmp_path / f"cut.doubtful-{n}") for n in (1, 2)]
    assert [run.verdict() for run in kept] == [STARVED, STARVED]
    assert [run.manifest().started_ns for run in kept] == [3, 2]
    assert runs.told[0] == "cut: inconclusive because the host was starved; try 2 of 3"


def test_what_could_not_be_measured_for_one_expectation_is_a_doubt_too(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "cut", UNMEASURED, PASS)
    assert runs.tried(2).verdict() == PASS
    assert runs.told == ["cut: inconclusive because plane 1 untouched: its sender paused 23.5 ms; try 2 of 2"]


def test_the_last_try_stands_whatever_it_says(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "cut", STARVED, STARVED, PASS)
    assert runs.tried(2).verdict() == STARVED
    assert runs.left == [PASS]


def test_a_doubtful_run_of_an_earlier_command_is_replaced_but_nothing_else(tmp_path: Path) -> None:
    Runs(tmp_path / "cut", STARVED, PASS).tried(2)
    assert Runs(tmp_path / "cut", STARVED, FAIL).tried(2).verdict() == FAIL
    (tmp_path / "cut.doubtful-1" / "manifest.json").unlink()
    with pytest.raises(InputError, match="not a run folder"):
        Runs(tmp_path / "cut", STARVED, FAIL).tried(2)
