"""Runs of a reproduction on file: a second call makes only what is missing."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpn.commands import paper
from hpn.commands.paper import reproduce_
from hpn.results.judge.verdict import Check, Outcome, Verdict
from hpn.results.run.folder import RunFolder, create
from hpn.scenarios.paper import kept
from hpn.scenarios.paper.kept import INDEX, Kept, keys_of
from hpn.scenarios.paper.reproduce import choose, reproduce, wanted_of
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import MachineError
from tests.results.sample import MANIFEST
from tests.scenarios.measured import link_down
from tests.scenarios.pool.pretended import Pretended, here

KEY, RUNS = "single-tor-flap", ["link-flap-single-tor", "link-flap"]


class Runs:
    """Makes runs, notes their names, and is stopped before the one called ``stop``."""

    def __init__(self, outcome: Outcome = Outcome.PASS) -> None:
        self.made: list[str] = []
        self.outcome, self.stop = outcome, ""

    def run(self, order: Order, _tell: object) -> RunFolder:
        if order.out.name == self.stop:
            raise KeyboardInterrupt
        self.made.append(order.out.name)
        folder = create(order.out)
        folder.write_manifest(MANIFEST)
        folder.write_metrics(link_down())
        folder.write_events([])
        folder.write_verdict(Verdict(self.outcome, (Check("state restored", self.outcome, None, 0),)))
        return folder


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    found = Runs()
    monkeypatch.setattr("hpn.scenarios.run.session.run", found.run)
    return found


def _reproduced(out: Path, lines: list[str] | None = None) -> None:
    claims, told = choose([KEY]), [] if lines is None else lines
    reproduce(claims, wanted_of(claims, "host", out, ()), "host", out, told.append, Pretended(here))


def test_a_second_call_makes_no_run_again(runs: Runs, tmp_path: Path) -> None:
    _reproduced(tmp_path)
    first, lines = list(runs.made), list[str]()
    assert first == RUNS
    assert [*json.loads((tmp_path / INDEX).read_text())] == sorted(RUNS), "in whatever order they end"
    _reproduced(tmp_path, lines)
    assert runs.made == first
    assert lines[-1].startswith(f"claim 1 of 1: {KEY} ")


def test_what_was_stopped_goes_on_with_what_is_missing(runs: Runs, tmp_path: Path) -> None:
    runs.stop = "link-flap"
    with pytest.raises(KeyboardInterrupt):
        _reproduced(tmp_path)
    runs.stop = ""
    _reproduced(tmp_path)
    assert runs.made == RUNS


def test_an_inconclusive_run_is_made_again(runs: Runs, tmp_path: Path) -> None:
    runs.outcome = Outcome.INCONCLUSIVE
    _reproduced(tmp_path)
    _reproduced(tmp_path)
    assert runs.made == [*RUNS, *RUNS]


def test_a_run_of_another_version_or_without_its_folder_is_made_again(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _reproduced(tmp_path)
    (tmp_path / "link-flap" / "verdict.json").unlink()
    _reproduced(tmp_path)
    assert runs.made == [*RUNS, "link-flap"]
    monkeypatch.setattr(kept, "code_digest", lambda _without: "another")
    _reproduced(tmp_path)
    assert runs.made == [*RUNS, "link-flap", *RUNS]


def test_a_damaged_index_is_an_empty_one(runs: Runs, tmp_path: Path) -> None:
    _reproduced(tmp_path)
    (tmp_path / INDEX).write_text("{")
    wanted = wanted_of(choose([KEY]), "host", tmp_path, ())
    assert Kept(tmp_path, wanted).runs == {}
    assert runs.made == RUNS


def test_engine_drill_draw_and_kernel_make_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = wanted_of(choose(["cross-segment"]), "host", tmp_path, (), draws=2)
    keys = keys_of(wanted)
    assert len(set(keys.values())) == len(keys) == 5
    assert not set(keys.values()) & set(keys_of(wanted_of(choose(["cross-segment"]), "uml", tmp_path, (), 2)).values())
    one = wanted["job-cross-segment-hpn@1"]
    phased = replace(one, order=replace(one.order, phase=2))
    assert keys_of({"a": one}) != keys_of({"a": phased})
    with monkeypatch.context() as patch:
        patch.setattr("platform.release", lambda: "another")
        assert keys_of({"a": one})["a"] != keys["job-cross-segment-hpn@1"]
    assert keys_of({"a": one})["a"] == keys["job-cross-segment-hpn@1"]


def test_a_run_that_could_not_be_made_is_not_on_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_order: Order, _tell: object) -> RunFolder:
        raise MachineError("no kernel")

    monkeypatch.setattr("hpn.scenarios.run.session.run", run)
    _reproduced(tmp_path)
    assert not (tmp_path / INDEX).exists()


@pytest.mark.parametrize(("draws", "why"), [("1", "2<=x<=64"), ("0", "2<=x<=64"), ("x", "not a valid integer")])
def test_fewer_than_two_draws_are_refused_before_any_run(draws: str, why: str, tmp_path: Path) -> None:
    told = CliRunner().invoke(reproduce_, ["cross-segment", "--draws", draws, "--out", str(tmp_path / "new")])
    assert told.exit_code == 2
    assert why in told.output
    assert not (tmp_path / "new").exists()


def test_ctrl_c_tells_what_is_on_file_and_the_same_command_goes_on(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "pool_for", lambda *_: nullcontext(Pretended(here)))
    runs.stop = "link-flap"
    command = [KEY, "--engine", "host", "--out", str(tmp_path)]
    told = CliRunner().invoke(reproduce_, command)
    assert told.exit_code != 0
    assert f"1 of 2 runs are on file in {tmp_path}; the same command goes on" in told.output
    runs.stop = ""
    told = CliRunner().invoke(reproduce_, command)
    assert f"1 of 2 runs are on file in {tmp_path}" in told.output
    assert f"claim 1 of 1: {KEY} " in told.output
    assert runs.made == RUNS
