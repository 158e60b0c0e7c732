"""Sequences are drawn from (seed, index) alone, are valid drills, and a drill file says exactly what was drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.failover.faults import FAULTS
from hpn.scenarios.campaign.drillfile import Note, drill_of, is_valid, text_of
from hpn.scenarios.campaign.plan import LONG_NS, Choice, FaultSequence, Plan, choices, draw, weight
from hpn.scenarios.drill.load import drill_from, load_drill
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.files.document import parse
from tests.scenarios.campaign.samples import CUT, FLAP, PLAN, sequence

FABRICS = (
    "tiny",
    "tiny-spare",
    "small",
    "tiny-pods",
    "tiny-stacked",
    "tiny-dcn-plus",
    "tiny-rail-only",
    "tiny-same-rail",
    "tiny-torus",
    "tiny-dragonfly",
)


@cache
def plan_of(preset: str, seed: int = 1) -> Plan:
    return replace(PLAN, topology=PRESETS[preset].spec, seed=seed)


@cache
def choices_of(preset: str) -> tuple[Choice, ...]:
    return choices(build(PRESETS[preset].spec), PLAN.kinds)


def drawn(preset: str, seed: int, index: int) -> FaultSequence:
    plan = plan_of(preset, seed)
    return draw(plan, choices_of(preset), index, lambda found: is_valid(plan, found))


@given(st.sampled_from(FABRICS), st.integers(0, 2**31), st.integers(0, 10**6))
def test_a_drill_file_says_exactly_what_was_drawn(preset: str, seed: int, index: int) -> None:
    plan, found = plan_of(preset, seed), drawn(preset, seed, index)
    note = Note(deaths=index % 3, why="queue pairs live: died: p0.s0.h0.r0>p0.s1.h0.r0#0; 'quoted' and\ntwo lines")
    drill = drill_of(plan, found, note)
    read = drill_from(parse(text_of(plan, found, note), drill.name), Path())
    assert replace(read, expectations=()) == replace(drill, expectations=())
    assert [e.text for e in read.expectations] == [e.text for e in drill.expectations]
    assert 1 <= len(found.steps) <= 4
    assert [planned.at_ns for planned in drill.timeline.faults] == [step.at_ns for step in found.steps]
    assert [planned.for_ns for planned in drill.timeline.faults] == [step.for_ns for step in found.steps]
    assert drill.timeline.end_ns < 8 * 10**9


def test_seed_and_index_decide_everything() -> None:
    first = [drawn("tiny", 7, index) for index in range(30)]
    assert first == [drawn("tiny", 7, index) for index in reversed(range(30))][::-1]
    assert first != [drawn("tiny", 8, index) for index in range(30)]
    assert len({found.steps for found in first}) == 30


def test_long_faults_outlast_the_timers_and_are_as_many_as_asked() -> None:
    short, long = plan_of("tiny"), replace(plan_of("tiny"), long_faults=0.4)
    steps = []
    for index in range(300):
        found = draw(long, choices_of("tiny"), index, lambda found: is_valid(long, found))
        assert drill_of(long, found).timeline.end_ns < 20 * 10**9
        steps += [step for step in found.steps if step.for_ns is not None]
    lasting = [step for step in steps if step.for_ns is not None and step.for_ns >= LONG_NS[0]]
    assert 0.3 < len(lasting) / len(steps) < 0.5
    assert max(step.for_ns or 0 for step in lasting) > 9 * 10**9 > min(step.for_ns or 0 for step in lasting)
    assert {"tor-control-hang", "lacp-loss"} <= {step.kind for step in lasting}
    assert all((step.for_ns or 0) < LONG_NS[0] for index in range(300) for step in drawn("tiny", 1, index).steps)
    assert short.long_faults == 0


def test_a_share_of_more_than_all_is_refused() -> None:
    with pytest.raises(InputError, match="write 0 to 1"):
        replace(PLAN, long_faults=1.5)


def test_every_kind_that_finds_a_target_is_drawn_and_none_other() -> None:
    able = {choice.kind for choice in choices_of("tiny")}
    assert {"link-down", "tor-crash", "plane-down", "flap-storm"} <= able <= set(FAULTS) - {"core-crash"}
    met = {step.kind for index in range(700) for step in drawn("tiny", 1, index).steps}
    assert met == able


def test_a_host_is_replaced_only_where_a_spare_stands_by() -> None:
    assert "host-replaced" not in {choice.kind for choice in choices_of("tiny")}
    assert "host-replaced" in {choice.kind for choice in choices_of("tiny-spare")}
    met = [step for index in range(200) for step in drawn("tiny-spare", 1, index).steps]
    replaced = [step for step in met if step.kind == "host-replaced"]
    assert replaced
    assert all(step.for_ns and step.for_ns > int(dict(step.arguments)["after"]) for step in replaced)


def test_a_fabric_of_another_name_is_written_out(tmp_path: Path) -> None:
    changed = PRESETS["tiny"].spec.model_copy(update={"aggs": 3, "name": "mine"})
    (tmp_path / "drill.yaml").write_text(text_of(replace(PLAN, topology=changed), sequence(FLAP)))
    assert load_drill(tmp_path / "drill.yaml").topology == changed


def test_a_fault_that_makes_no_drill_is_refused_and_never_drawn() -> None:
    contradiction = sequence(CUT, replace(CUT, at_ns=CUT.at_ns + 1000))
    assert not is_valid(PLAN, contradiction)
    with pytest.raises(InputError, match="makes a valid drill"):
        draw(PLAN, choices_of("tiny"), 0, lambda _sequence: False)


def test_what_fails_more_often_is_drawn_more_often() -> None:
    assert pytest.approx(0.00057) == FAULTS["link-down"].PER_MONTH
    assert pytest.approx(0.00051) == FAULTS["tor-crash"].PER_MONTH
    assert 1000 < FAULTS["link-flap"].PER_MONTH / FAULTS["link-down"].PER_MONTH < 100_000
    assert weight("link-flap", 16) > weight("link-down", 16) > weight("tor-crash", 16)
    assert weight("agg-crash", 16) == weight("tor-crash", 16), "nothing is published of Aggs"
    assert weight("link-down", 0) == 0
