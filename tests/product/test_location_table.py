"""The table of located faults: its drills, what counts as right in it, and its pictures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from hpn.failover.locating.rounds import Score
from hpn.failover.locating.sources import SOURCES
from hpn.scenarios.drill.load import drill_from
from hpn.testbed.files.document import parse
from tests.product.location_cells import CASES, TOPOLOGIES, TRAFFIC, trials
from tests.product.location_curves import THINNED, Course, over_rate, over_time
from tests.product.location_page import Answer, Told, page
from tests.product.location_simulated import answers

S = 10**9
RIGHT, WRONG = Score(S, S, 10, 0, 5), Score(None, None, 10, 10, 5)
UNTOLD, UNMET = Score(None, None, 0, 0, 5), Score(None, None, 0, 0, 0)


def test_every_case_source_and_fabric_comes_up() -> None:
    every = [*trials()]
    assert {case.name for trial in every for case in trial.cases.values()} == set(CASES)
    assert {trial.topology for trial in every} == set(TOPOLOGIES)
    assert {case.source for case in CASES.values()} == set(SOURCES)
    assert len({trial.name for trial in every}) == len(every) == sum(traffic.runs for traffic in TRAFFIC.values())


def test_a_thousand_faults_of_one_percent_and_more_and_a_hundred_healthy_runs_are_drawn() -> None:
    broken = [case for trial in trials() for case in trial.cases.values() if case.traffic == "broken"]
    assert len(broken) >= 1000
    assert sum(not trial.cases for trial in trials()) == 100


@pytest.mark.parametrize("traffic", TRAFFIC)
def test_the_drills_are_valid(traffic: str, tmp_path: Path) -> None:
    mine = [trial for trial in trials() if trial.traffic.name == traffic]
    for trial in mine[: len(TOPOLOGIES)]:
        drill = drill_from(parse(trial.drill, str(tmp_path / f"{trial.name}.yaml")), tmp_path)
        assert {fault.id for fault in drill.timeline.faults} == {each.key for each in trial.drawn()}


@pytest.mark.parametrize(
    ("case", "score", "counts", "is_right"),
    [
        ("one way, 1 %", RIGHT, True, True),
        ("one way, 1 %", WRONG, True, False),
        ("one way, 1 %", UNTOLD, True, False),
        ("one way, 1 %", UNMET, False, False),
        ("cables swapped", UNTOLD, True, True),
        ("cables swapped", UNMET, True, True),
        ("cables swapped", WRONG, True, False),
    ],
)
def test_what_is_right_of_a_case(case: str, score: Score, counts: bool, is_right: bool) -> None:
    told = Told(CASES[case], score)
    assert (told.counts, told.is_right) == (counts, is_right)


def test_the_page_counts_what_probes_are_to_locate_first() -> None:
    told = tuple(Told(CASES["both ways, 1 %"], score) for score in (RIGHT, RIGHT, WRONG))
    rare = (Told(CASES["one way, 0.1 %"], UNTOLD),)
    answers = [
        Answer("broken-tiny-0", "tiny", "loss", "likelihood", told, 1),
        Answer("rare-tiny-0", "tiny", "loss", "likelihood", rare, 0),
        Answer("healthy-clos-2", "clos", "loss", "likelihood", (), 0),
        Answer("healthy-clos-2", "clos", "delay", "likelihood", (), 0),
    ]
    text = page(answers)
    assert "| likelihood | 66.7 (20.8-93.9) | 66.7 (20.8-93.9) | 1 | 0 (0-79.3) |" in text
    assert "| both ways, 1 % | loss | 3 | 66.7 (20.8-93.9), 1.0 s | - | - |" in text
    assert "| one way, 0.1 % | loss | 1 | 0 (0-79.3) | - | - |" in text


def test_the_pictures_have_a_line_for_each_share_of_lost_packets() -> None:
    found = [
        Course(share, (False,) * 50 + (True,) * 50, tuple(at < 2 for at, _ in enumerate(THINNED)))
        for share in ("1 %", "10 %", "1 %")
    ]
    for picture in (over_time(found), over_rate(found, 0.2)):
        root = ElementTree.fromstring(picture)
        lines = [element for element in root.iter() if element.tag.endswith("polyline")]
        assert len(lines) == 2
        assert "1 % (2)" in picture


@pytest.mark.parametrize("topology", ["clos", "single-tor", "dcn-plus"])
def test_the_last_answer_to_each_simulated_fault_is_right(topology: str) -> None:
    found = [*answers(topology, 0, "likelihood")]
    assert len(found) > 6
    assert {answer for _, answer in found} == {"located"}, found
