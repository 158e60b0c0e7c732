"""Drills of the library on fabrics of others: what they name is found there, or one line says why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hpn.commands.drill import drill as drill_command
from hpn.scenarios.batch.pool.drills import body_from, task_for
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.coordinates import FabricParts, Moving
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.targets import accepted, target_problem
from hpn.scenarios.run import client_site, engines
from hpn.scenarios.run.engines import RunBody
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import WIRED, FabricSpec
from hpn.testbed.vm.engines import named
from tests.fabric.as_wired import as_wired

_NARROW = {"hosts": 4, "rails": 1, "aggs": 1}


def _spec(preset: str = "tiny", /, **keys: object) -> FabricSpec:
    return PRESETS[preset].spec.model_copy(update=keys)


def _targets(drill: Drill) -> list[str]:
    return [planned.fault.target for planned in drill.timeline.faults]


def _notes(drill: Drill) -> tuple[str, ...]:
    assert drill.other_fabric is not None
    return drill.other_fabric.notes


def _refused(name: str, spec: FabricSpec) -> str:
    with pytest.raises(InputError) as caught:
        catalogue.load(name, spec)
    (problem,) = caught.value.problems
    return problem


def test_a_drill_keeps_the_names_that_the_other_fabric_has_too() -> None:
    there = catalogue.load("tor-crash", _spec("small", hosts=10))
    own = catalogue.load("tor-crash")
    assert _targets(there) == _targets(own)
    assert there.expectations == own.expectations
    assert there.topology == _spec("small", hosts=10)
    assert _notes(there) == ()


def test_a_target_that_is_not_there_becomes_the_first_of_its_kind_and_a_note_says_so() -> None:
    there = catalogue.load("paths-agg-link-down", _spec(**_NARROW))
    assert _targets(there) == ["p0.s0.t0.0-p0.a0.0"]
    assert "target p0.s0.t0.0-p0.a0.1 of the drill -> p0.s0.t0.0-p0.a0.0" in _notes(there)


def test_an_uplink_stays_an_uplink_where_its_name_is_another_networks() -> None:
    there = catalogue.load("link-down-fat-tree", _spec("tiny-rail-only"))
    assert _targets(there) == ["p0.s0.t0.0-p0.r0.a0"]


def test_parts_that_are_apart_stay_apart() -> None:
    own, narrow = FabricParts(build(_spec(segments=2, hosts=4))), FabricParts(build(_spec(segments=2, hosts=2)))
    named = [part for name in ("p0.s0.h3", "p0.s0.h0.r1.0", "p0.s1.h2") if (part := own.named(name)) is not None]
    moving = Moving(named, narrow)
    assert [moving.moved(part) for part in named] == ["p0.s0.h1", "p0.s0.h0.r1.0", "p0.s1.h0"]


@pytest.mark.parametrize(
    ("name", "keys", "why"),
    [
        ("two-links-at-once", {"segments": 1}, "the drill needs 2 segments ('p0.s1.h1.r0.0'), and this fabric has 1"),
        ("stacked-upgrade-hpn", {"architecture": "single-tor"}, "needs 2 ports at a NIC ('p0.s0.t0.1'), and this"),
        ("core-crash", {}, "the drill needs a Core ('c0.0'), and this fabric has none"),
        ("agg-crash", {"segments": 1}, "no traffic of the drill meets p0.a0.0 on this fabric: there is one segment"),
        ("job-spare-host", {}, "job.restart.spares is 1 and the fabric has 0 spare hosts"),
    ],
)
def test_a_drill_that_means_nothing_there_is_refused_in_one_line(name: str, keys: dict[str, object], why: str) -> None:
    said = _refused(name, _spec(**keys))
    assert said.startswith(f"{name} does not fit tiny (")
    assert why in said
    assert ".yaml" not in said  # the drill's file is right


def test_limits_of_parts_that_are_not_there_are_left_out_and_named() -> None:
    there = catalogue.load("tor-crash", _spec(architecture="dual-tor-clos"))
    assert [each.metric.key for each in there.expectations].count("untouched") == 0
    assert any(note.startswith("left out: expect[") and "one plane" in note for note in _notes(there))
    assert "architecture" not in "".join(_notes(there))  # the drill's own topology leaves it at its default


def test_an_order_of_moves_is_left_out_where_no_nic_has_a_port_to_move_to() -> None:
    there = catalogue.load("tor-crash", _spec(architecture="single-tor"))
    assert "order" not in [each.metric.key for each in there.expectations]
    assert any(note.startswith("left out: expect[") and "path control moves nothing" in note for note in _notes(there))


def test_what_the_drills_own_fabric_sets_and_this_one_does_not_is_told() -> None:
    there = catalogue.load("tor-crash-no-path-control", _spec())
    assert there.topology.path_control.enabled
    assert "path_control.enabled is no on the drill's own fabric, yes here" in _notes(there)


def test_other_rates_are_told_though_the_drill_leaves_them_open() -> None:
    assert "scale is 1000 on the drill's own fabric, 5500 here" in _notes(
        catalogue.load("tor-crash", _spec(scale=5500))
    )


def test_a_job_is_as_large_as_the_fabric_allows() -> None:
    there = catalogue.load("link-flap-training", _spec(hosts=4))
    assert there.job is not None
    assert "job.training.data 4 of the drill -> 8" in _notes(there)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_drill_of_the_library_fits_or_says_why_not(architecture: str) -> None:
    of_its_own = (preset for preset in PRESETS.values() if preset.spec.architecture == architecture)
    keys = {"architecture": architecture, "name": "theirs"}
    spec = next(of_its_own, PRESETS["tiny"]).spec
    spec = (as_wired(build(spec)) if architecture == WIRED else spec).model_copy(update=keys)
    fabric, fit, refusals = build(spec), 0, list[str]()
    for name in catalogue.names():
        try:
            there = catalogue.load(name, spec)
        except InputError as error:
            refusals += error.problems
            continue
        fit += 1
        for planned in there.timeline.faults:
            assert planned.fault.target in accepted(fabric, planned.fault.TARGET)
            assert target_problem(fabric, planned.fault) == ""
    assert all(" does not fit theirs (" in line and "\n" not in line for line in refusals)
    assert fit >= 55  # of 83: what stays away needs spares, Cores, a second ToR or marks


def test_the_run_folder_says_that_it_is_not_the_drills_own_fabric() -> None:
    there = catalogue.load("paths-agg-link-down", _spec(**_NARROW))
    told = asked_of(there, build(there.topology)).other_fabric
    assert told[0] == "run on tiny (hpn), not on its own fabric"
    assert "target p0.s0.t0.0-p0.a0.1 of the drill -> p0.s0.t0.0-p0.a0.0" in told
    own = catalogue.load("tor-crash")
    assert asked_of(own, build(own.topology)).other_fabric == ()


def test_a_guest_and_a_pool_are_told_the_fabric() -> None:
    spec = named("host")
    there = catalogue.load("tor-crash", _spec(hosts=5, lag="nft"))
    assert there.put_on is not None
    body = RunBody(there.source, (), 0, 1, 1, keep_records=False, topology=there.put_on)
    assert engines.body_from(body.as_json()).order(spec).drill == there
    task = task_for("it", Order(there, Path("out"), ()), spec, 1, far=False)
    assert body_from(task.job.body).order().drill == there


def test_the_whole_library_leaves_out_what_does_not_fit() -> None:
    found = client_site.library(_spec(segments=1))
    assert "tor-crash" in {drill.name for drill in found.drills}
    assert any(line.startswith("two-links-at-once does not fit tiny (hpn): ") for line in found.left_out)


def test_show_and_validate_take_a_topology_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("{segments: 2, hosts: 4, rails: 1, aggs: 1}\n")
    mine = str(tmp_path / "mine.yaml")
    shown = CliRunner().invoke(drill_command, ["show", "paths-agg-link-down", "--topology", mine])
    assert shown.exit_code == 0, shown.output
    assert "This text is about the drill's own fabric" in shown.output
    assert "run on mine (hpn), not on its own fabric" in shown.output
    assert "target p0.s0.t0.0-p0.a0.1 of the drill -> p0.s0.t0.0-p0.a0.0" in shown.output
    valid = CliRunner().invoke(drill_command, ["validate", "tor-crash", "core-crash", "--topology", mine])
    assert isinstance(valid.exception, InputError)
    assert valid.output.startswith("tor-crash: good\n  run on mine (hpn)")
    assert valid.exception.problems == (
        "core-crash does not fit mine (hpn): the drill needs a Core ('c0.0'), and this fabric has none",
    )
    assert load_topology(mine).name == "mine"


def test_the_file_of_a_drill_is_as_it_runs_there() -> None:
    there = FabricSpec(name="wide", planes=4, hosts=3)
    drill = catalogue.load("tor-crash", there)
    found = catalogue.document_of("tor-crash", drill).data
    assert found["topology"] == {"name": "wide", "planes": 4, "hosts": 3}
    assert catalogue.document_of("tor-crash", catalogue.load("tor-crash")).data["topology"] == "tiny"
