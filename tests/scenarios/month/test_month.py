"""A month of failures: sums by hand for single failures, the paper's own count of crashes, what is refused."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hpn import cli
from hpn.scenarios.model.month.assumptions import Assumptions, told, with_set
from hpn.scenarios.model.month.failures import MONTH_H, Drawn, Failure, Flaps, Kind, draw
from hpn.scenarios.model.month.job import ModelledJob
from hpn.scenarios.model.month.job_network import PodNetwork
from hpn.scenarios.model.month.lost_hours import LostHours, lost_hours
from hpn.scenarios.model.month.month import NETWORKS, MonthRequest, Outcome, reckon
from hpn.testbed.errors import HpnError, InputError, MachineError
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.service import preflight
from hpn.traffic.fluid.pods import Pods

GIVEN = Assumptions()
SMALL = FabricSpec(segments=2, hosts=4, rails=2, aggs=4)
RING = SMALL.segments * SMALL.hosts * SMALL.rails
NO_FLAPS = Flaps(np.zeros(0), np.zeros(0), np.zeros(0))
QUIET = Assumptions(links_a_month=0, tors_a_month=0, flaps_a_day=0)
BIG = 64e9


@cache
def _job(network: str) -> ModelledJob:
    spec = SMALL.model_copy(update={"architecture": "hpn" if network.startswith("hpn") else network})
    return ModelledJob(_pods(spec, RING, path_control=network != "hpn-no-path-control"), GIVEN)


def _pods(spec: FabricSpec, gpus: int, *, path_control: bool = True) -> PodNetwork:
    return PodNetwork.first_hosts(Pods.of(spec), gpus, 4, 1, path_control=path_control)


def _lost(network: str, *failures: Failure, flaps: Flaps = NO_FLAPS) -> LostHours:
    return lost_hours(_job(network), Drawn(failures, flaps, np.full(10, 0.5)))


def _link(at_h: float, until_h: float, number: int = 0) -> Failure:
    return Failure(at_h, until_h, Kind.LINK, number)


def test_a_cut_link_makes_hpn_slower_until_it_is_repaired() -> None:
    """One port of two: sums take twice as long, which are 0.214 of 3.9 s."""
    found = _lost("hpn", _link(100, 124))
    stretch = (3.9 + 0.214) / 3.9
    assert found.slower_h == pytest.approx(24 * (1 - 1 / stretch))
    assert found.stalled_h == pytest.approx(GIVEN.path_control_ms / 3.6e6)
    assert (found.crashes, found.down_h, found.rolled_back_h) == (0, 0, 0)


@pytest.mark.parametrize("network", ["single-tor", "hpn-no-path-control"])
def test_a_cut_link_without_another_way_kills_the_job_which_goes_on_with_a_spare(network: str) -> None:
    found = _lost(network, _link(100, 124))
    assert found.crashes == 1
    assert found.down_h == pytest.approx(GIVEN.dies_after_s / 3600 + GIVEN.restart_min / 60)
    assert found.rolled_back_h == pytest.approx(0.5 * GIVEN.checkpoint_h)
    assert (found.slower_h, found.stalled_h) == (0, 0)


def test_a_rollback_is_no_more_than_what_was_done_since_the_last_start() -> None:
    found = _lost("single-tor", _link(100, 124), _link(100.5, 124, 2))
    first = 0.5 * GIVEN.checkpoint_h
    up_h = 0.5 - GIVEN.dies_after_s / 3600 - GIVEN.restart_min / 60
    assert found.crashes == 2
    assert found.rolled_back_h == pytest.approx(first + up_h)


def test_no_spares_replace_a_rack_and_the_job_waits_for_the_tor() -> None:
    tor = Failure(100, 104, Kind.TOR, 0)
    found = _lost("single-tor", tor)
    assert found.crashes == 1
    assert found.down_h == pytest.approx(4 + GIVEN.restart_min / 60)
    assert _lost("hpn", tor).crashes == _lost("stacked-dual-tor", tor).crashes == 0
    assert _lost("stacked-dual-tor", replace(tor, kind=Kind.STACK)).crashes == 1


def test_a_failure_that_outlasts_the_month_costs_until_its_end() -> None:
    stretch = (3.9 + 0.214) / 3.9
    assert _lost("hpn", _link(MONTH_H - 6, MONTH_H + 18)).slower_h == pytest.approx(6 * (1 - 1 / stretch))


def _flap(dark_s: float, phase: float = 0.0) -> Flaps:
    return Flaps(np.array([10.0]), np.array([dark_s]), np.array([phase]))


@pytest.mark.parametrize(
    ("dark_s", "phase", "stall_s"),
    [
        (1.0, 0.0, 4.29),  # back in use after 3.46 s: one retry
        (5.0, 0.0, 2 * 4.29),
        (1.0, 0.5, 4.29),  # the next sums begin 1.95 s later and find 1.51 s left
        (0.5, 0.06, 0.0),  # they begin 3.67 s later, when all is over
        (40.0, 0.0, math.inf),
    ],
)
def test_without_another_way_a_flap_costs_whole_retries(dark_s: float, phase: float, stall_s: float) -> None:
    _, found = _job("single-tor").stalls(_flap(dark_s, phase))
    assert found.tolist() == [pytest.approx(stall_s)]


def test_flaps_at_the_same_time_stall_a_synchronous_job_once_and_a_deadly_one_kills_it() -> None:
    two = Flaps(np.array([10.0, 10.0 + 1 / 3600]), np.array([1.0, 1.0]), np.zeros(2))
    assert _lost("single-tor", flaps=two).stalled_h * 3600 == pytest.approx(1 + 4.29)
    assert _lost("single-tor", flaps=_flap(40)).crashes == 1
    assert _lost("hpn", flaps=_flap(1)).stalled_h * 3600 == pytest.approx(GIVEN.path_control_ms / 1000)


@cache
def _outcomes(seed: int = 1, given: Assumptions = GIVEN) -> list[Outcome]:
    return [*reckon(MonthRequest((*NETWORKS,), (), SMALL, None, 8, 5, seed, given), BIG, lambda _line: None)]


def test_a_month_without_failures_takes_nothing_but_what_hashes_take() -> None:
    for found in _outcomes(given=QUIET):
        assert found.lost_gpu_hours.most == found.crashes.most == 0
        assert (found.hashes_gpu_hours > 1) == (found.network in {"dual-tor-clos", "stacked-dual-tor"})


def test_with_more_planes_links_fail_more_often_and_each_costs_less() -> None:
    asked = MonthRequest(("hpn", "hpn-four-planes", "hpn-eight-planes"), (), SMALL, None, 64, 12, 1, GIVEN)
    two, four, eight = reckon(asked, BIG, lambda _line: None)
    assert two.iteration_s == pytest.approx(four.iteration_s) == pytest.approx(eight.iteration_s)
    assert two.one_link_cut > four.one_link_cut > eight.one_link_cut > 1
    assert two.flaps * 4 == four.flaps * 2 == eight.flaps


def test_the_same_seed_gives_the_same_months_and_another_others() -> None:
    often = replace(GIVEN, links_a_month=0.2)
    first = _outcomes(1, often)
    _outcomes.cache_clear()
    assert first == _outcomes(1, often)
    assert first != _outcomes(2, often)
    assert {found.kind for found in first} == {"modelled"}


def test_reasons_add_up() -> None:
    for found in _outcomes(1, replace(GIVEN, links_a_month=0.2, tors_a_month=0.2, flaps_a_day=1e6)):
        parts = found.slower_gpu_hours + found.stalled_gpu_hours + found.rolled_back_gpu_hours + found.down_gpu_hours
        assert parts == pytest.approx(found.lost_gpu_hours.mean)
        assert 0 < found.lost_share < 1
        a_month = 30 * 86400 / GIVEN.iteration_s * GIVEN.samples_a_gpu * found.gpus  # all that full speed trains on
        assert found.lost_samples == pytest.approx(found.lost_share * a_month)


def test_a_job_of_3000_gpus_on_single_tor_meets_one_or_two_crashes_a_month() -> None:
    """The paper's own count (section 2), of which the failure rates are the source."""
    spec = FabricSpec(segments=3, hosts=128, rails=8, aggs=8)
    asked = MonthRequest(("single-tor",), (), spec, 3072, 1, 100, 1, replace(GIVEN, flaps_a_day=0))
    (found,) = reckon(asked, BIG, lambda _line: None)
    assert 1 < found.crashes.mean < 2


def test_failures_come_as_often_as_assumed_and_on_the_links_of_the_job() -> None:
    pods = Pods.of(SMALL)
    given = replace(GIVEN, links_a_month=0.5, tors_a_month=0.5, flaps_a_day=GIVEN.fleet_gpus)
    parts = _pods(SMALL, RING // 2)
    months = [draw(parts, given, 1, month) for month in range(300)]
    failures = [failure for month in months for failure in month.failures]
    links = [failure.number for failure in failures if failure.kind is Kind.LINK]
    assert len(links) / 300 == pytest.approx(RING // 2 * 2 * 0.5, rel=0.1)
    assert len(failures) / 300 == pytest.approx(len(links) / 300 + 8 * 0.5, rel=0.1)
    hosts = {link // pods.tors % pods.nics_of_a_rail for link in links}
    assert hosts == set(range(4))
    assert np.mean([len(month.flaps.at_h) for month in months]) == pytest.approx(RING // 2 * 30, rel=0.05)


def test_what_does_not_fit_into_memory_is_refused_with_the_figure_before_it_begins() -> None:
    with pytest.raises(MachineError, match=r"245,760 queue pairs .* 0\.2 GB and 0\.1 GB are free; lower --pods"):
        next(reckon(MonthRequest(("hpn",)), 100e6, lambda _line: pytest.fail("it began")))


def test_every_assumption_has_a_unit_and_a_source() -> None:
    assert all(line.unit and line.source and not line.changed for line in told(GIVEN))
    changed = {line.name: line.source for line in told(with_set(["restart_min=5"])) if line.changed}
    assert changed == {"restart_min": "given"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["restart=5"], "did you mean restart_min"),
        (["restart_min=nan", "retries=0"], "restart_min is a number"),
        (["retries=0"], "retries is a number, 1 to 1000"),
        (["flap_s=1e999"], "flap_s is a number, 0 to 3600"),
        (["tors_a_month"], "tors_a_month is a number, 0 to 1; not ''"),
        (["sums_s=9"], "sums_s 9 is not less"),
    ],
)
def test_an_assumption_that_makes_no_sense_is_refused(words: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        with_set(words)


def _run(*words: str) -> None:
    cli.command_line.main(["month", *words], prog_name="hpn", standalone_mode=False)


def test_the_command_prints_a_row_for_each_network(capsys: pytest.CaptureFixture[str]) -> None:
    _run("hpn", "single-tor", "--gpus", "64", "--months", "2", "--queue-pairs", "2", "--set", "links_a_month=0.3")
    said = capsys.readouterr().out
    assert "MODELLED" in said
    assert "links_a_month=0.3" in said
    assert {line.split()[0] for line in said.splitlines() if "%" in line and "x1." in line} == {"hpn"}
    _run("hpn", "single-tor", "--gpus", "64", "--months", "1", "--queue-pairs", "2", "--json")
    document = json.loads(capsys.readouterr().out)
    assert [each["network"] for each in document["networks"]] == ["hpn", "single-tor"]
    assert document["networks"][1]["one_link_cut"] is None
    _run("--assumptions")
    assert "flaps_a_day" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fat-tree"], "a month cannot be spent on 'fat-tree'"),
        (["--gpus", "12"], "in steps of 8"),
        (["--gpus", "16000"], "16 to 15,360"),
        (["--gpus", "8"], "at least 2"),
        (["--set", "x=1"], "no assumption 'x'"),
    ],
)
def test_the_command_refuses_what_it_cannot_reckon(words: list[str], says: str) -> None:
    with pytest.raises(HpnError, match=says) as found:
        _run(*words)
    assert found.value.exit_code == 2


def test_the_command_draws_loads_and_sizes(tmp_path: Path) -> None:
    loads, sizes = tmp_path / "loads.svg", tmp_path / "sizes.svg"
    _run("hpn", "single-tor", "--queue-pairs", "2", "--load-map", str(loads), "--job-sizes", str(sizes))
    said = loads.read_text()
    before, during, moved = (float(share) for share in re.findall(r"NICs get ([\d.]+)% of their rate", said))
    assert during < moved <= before <= 45
    assert said.count("1 ToRs dead") == 2
    assert re.search(r"hpn, one link cut: 4\.11 s on 240 GPUs.*15,360 GPUs\. single-tor: 3\.90 s", sizes.read_text())
    with pytest.raises(InputError, match="cannot write"):
        _run("hpn", "--queue-pairs", "1", "--load-map", str(tmp_path / "none" / "x.svg"))


def test_the_command_refuses_64_pods_on_a_small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "available_memory", lambda: 2 * 10**9)
    with pytest.raises(MachineError, match="15,728,640 queue pairs"):
        _run("hpn", "--pods", "64")
