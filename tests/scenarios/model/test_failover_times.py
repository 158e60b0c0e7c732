"""Times of failovers: read from a file that may be anybody's, drawn by a seed, made of run folders."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.model import EdgeKind
from hpn.scenarios.model.calibrating import measured_in
from hpn.scenarios.model.failover_times import (
    Case,
    Conditions,
    Draws,
    FailoverStep,
    FailoverTimes,
    Side,
    Source,
    Times,
    load,
    shipped,
    text_of,
)
from hpn.testbed.errors import InputError

CASE = Case("link-down", EdgeKind.FAILURE, Side.DOWN, FailoverStep.OUTAGE)
HPN = Conditions("hpn", "move-source-ports", "kernel", "bird")
CLOS = Conditions("dual-tor-clos", "move-source-ports", "kernel", "bird")
OFF = Conditions("hpn", "off", "kernel", "bird")


def source(conditions: Conditions) -> Source:
    return Source("cut", "uml-virtual-time", "6.12", 1, "", conditions)


def measured(*runs: tuple[Conditions, tuple[float, ...]]) -> FailoverTimes:
    times = tuple(Times(at, CASE, ms, max(ms) + 1) for at, (_, ms) in enumerate(runs))
    return FailoverTimes(tuple(source(conditions) for conditions, _ in runs), times)


def test_what_ships_names_the_run_of_every_time() -> None:
    found = shipped()
    assert {times.source for times in found.times} == set(range(len(found.sources)))
    assert all("virtual-time" in each.engine for each in found.sources)
    assert load(Path("scenarios/model/measured.json")) == found


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = measured((HPN, (1.0, 2.5)), (CLOS, (7.0,)))
    (tmp_path / "times.json").write_text(text_of(found))
    assert load(tmp_path / "times.json") == found


def test_times_come_from_the_runs_that_are_most_alike() -> None:
    found = measured((OFF, (5.0,)), (CLOS, (7.0,)), (HPN, (9.0,)))
    for conditions, ms in ((OFF, 5.0), (CLOS, 7.0), (HPN, 9.0), (Conditions("dcn-plus", "off", "nft", "bird"), 5.0)):
        drawn = Draws(found, conditions, 1).draw(CASE, range(3))
        assert drawn is not None
        assert (drawn.ms, drawn.least, drawn.most) == ((ms, ms, ms), ms, ms + 1)


def test_only_runs_with_a_hunt_for_paths_serve_a_fabric_that_hunts() -> None:
    hunting = replace(HPN, valleys=True)
    found = measured((HPN, (9.0,)), (replace(CLOS, valleys=True), (30.0,)))
    drawn = [Draws(found, conditions, 1).draw(CASE, [0]) for conditions in (HPN, hunting)]
    assert [each and each.ms for each in drawn] == [(9.0,), (30.0,)]
    assert Draws(measured((HPN, (9.0,))), hunting, 1).draw(CASE, [0]) is None


def test_flows_of_an_edge_share_a_run_and_a_seed_repeats() -> None:
    found = measured((HPN, (1.0, 2.0)), (HPN, (11.0, 12.0)))
    seen = set()
    for seed in range(20):
        drawn, again = (Draws(found, HPN, seed).draw(CASE, range(6)) for _ in range(2))
        assert drawn is not None
        assert again is not None
        assert drawn.ms == again.ms
        assert set(drawn.ms) <= {1.0, 2.0} or set(drawn.ms) <= {11.0, 12.0}
        assert (drawn.least, drawn.most) == (1.0, 13.0)
        seen |= set(drawn.ms)
    assert seen == {1.0, 2.0, 11.0, 12.0}
    assert Draws(found, HPN, 1).draw(Case("nic-down", EdgeKind.FAILURE, Side.UP, FailoverStep.OUTAGE), [0]) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 2}, "format 2"),
        ({"times": [{"source": 3}]}, "no run"),
        ({"times": [{"ms": []}]}, "no times"),
        ({"times": [{"ms": [-1.0]}]}, "a time that is none"),
        ({"times": [{"ms": [1e12]}]}, "a time that is none"),
        ({"times": [{"ms": ["NaN"]}]}, "a time that is none"),
        ({"times": [{"most_ms": "x"}]}, "most_ms"),
        ({"times": [{"case": {"fault": "x"}}]}, "case"),
        ({"sources": 3}, "sources"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path: Path, change: dict[str, object], said: str) -> None:
    document = json.loads(text_of(measured((HPN, (1.0,)))))
    for key, value in change.items():
        if key == "times":
            assert isinstance(value, list)
            document["times"][0].update(value[0])
        else:
            document[key] = value
    (tmp_path / "times.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=said) as error:
        load(tmp_path / "times.json")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"times": 1e999}', '{"format": "\\u001b[2J"}'])
def test_what_is_no_document_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "times.json").write_text(text)
    with pytest.raises(InputError) as error:
        load(tmp_path / "times.json")
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)


def test_a_file_that_is_not_there_and_a_folder_that_is_no_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--calibrate"):
        load(tmp_path / "none.json")
    with pytest.raises(InputError):
        measured_in([tmp_path])
