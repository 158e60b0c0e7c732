"""Drills under a profile of hosts: by ``--profile``, by their own topology, and what contradicts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hpn.cli import command_line
from hpn.results.run.identity import Identity, identity_of, run_otherwise
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.profiles import LAB, PRODUCTION
from hpn.testbed.fabric.spec import FabricSpec

MUTE = """\
drill: mute
summary: LACPDUs are lost
topology: {preset: tiny, profile: production}
workload: {pattern: permutation}
timeline:
  healthy: 1 s
  faults:
    - {id: mute, fault: lacp-loss, target: p0.s0.h0.r0.0, at: 1 s, for: 100 s}
  settle: 6 s
expect:
  - queue_pair_deaths: {at_most: 0}
  - detect: {at_most: 3 s, edge: failure}
"""


def written(tmp_path: Path, text: str) -> str:
    (tmp_path / "mute.yaml").write_text(text)
    return str(tmp_path / "mute.yaml")


def test_slow_lacp_cannot_notice_within_3_s_and_the_file_that_expects_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        catalogue.load(written(tmp_path, MUTE))
    assert [*refused.value.problems] == [
        f"{tmp_path}/mute.yaml:12: expect[1].detect.at_most is 3 s, but only LACP notices mute, and with LACP slow not"
        " before 59.5 s; write lacp: {rate: fast, host_rate: fast}, or write 90 s"
    ]


@pytest.mark.parametrize(
    ("was", "instead"),
    [
        ("at_most: 3 s", "at_most: 90 s"),
        ("profile: production", "profile: production, lacp: {rate: fast}"),  # the ToR misses three in 3 s
        ("profile: production", "profile: production, lacp: {host_rate: fast}"),
        ("profile: production", "profile: lab"),
        ("lacp-loss", "link-down"),
        ("fault: lacp-loss", "fault: silent-drop, share: 1 %"),
    ],
)
def test_a_limit_that_can_be_kept_is_not_refused(tmp_path: Path, was: str, instead: str) -> None:
    assert catalogue.load(written(tmp_path, MUTE.replace(was, instead))).name == "mute"


def test_every_drill_of_the_library_can_be_run_under_production_and_leaves_nothing_but_time_to_the_limits() -> None:
    left_out: dict[str, set[str]] = {}
    for name in catalogue.names():
        drill = catalogue.load(name, profile=PRODUCTION)
        assert drill.topology.profile == PRODUCTION
        own = catalogue.load(name)
        assert (drill.put_on is None) == (own.topology.profile == PRODUCTION), "a guest is told of what is not its own"
        if drill.put_on is not None:
            again = FabricSpec.model_validate(drill.put_on.model_dump(exclude_unset=True))
            assert again == drill.topology
        assert own.timeline == drill.timeline
        lost = [each.text for each in own.expectations if each.text not in [kept.text for kept in drill.expectations]]
        if lost:
            left_out[name] = {text.split()[0] for text in lost}
    light_on = ("lacp-loss", "one-way-loss-down", "one-way-loss-up", "silent-drop", "silent-drop-independent")
    assert left_out == {name: {"detect"} for name in light_on}


@pytest.mark.parametrize("fault", ["silent-drop", "one-way-loss, direction: up", "lacp-loss, direction: up"])
def test_so_is_one_of_any_fault_that_keeps_light_and_loses_lacpdus(tmp_path: Path, fault: str) -> None:
    with pytest.raises(InputError, match=r"mute.yaml:12: expect\[1\].detect.at_most is 3 s, but only LACP notices"):
        catalogue.load(written(tmp_path, MUTE.replace("lacp-loss", fault)))


def test_a_drill_that_is_in_the_profile_already_is_on_its_own_fabric() -> None:
    assert catalogue.load("link-down", profile=LAB).other_fabric is None


def _identity(spec: FabricSpec, drill: Drill) -> Identity:
    fabric = build(spec)
    return identity_of(fabric, asked_of(drill, fabric))


def test_runs_of_two_profiles_are_told_apart_as_the_same_fabric_run_otherwise() -> None:
    found = []
    for profile in (LAB, PRODUCTION):
        drill = catalogue.load("link-down", profile=profile)
        found.append(_identity(drill.topology, drill))
    lab, production = found
    assert lab.digests["fabric"] != production.digests["fabric"]
    assert lab.digests["drill"] == production.digests["drill"]
    told = run_otherwise(lab.told, production.told)
    assert "host_profile was lab, is production" in told
    assert "lacp.rate was fast, is slow" in told


def test_a_profile_in_words_and_in_single_values_is_one_fabric() -> None:
    lacp = {"rate": "slow", "host_rate": "slow", "miimon_ms": 100, "aggregate_wait_ms": 2000}
    drill = catalogue.load("link-down")
    specs = (FabricSpec(profile=PRODUCTION), FabricSpec.model_validate({"lacp": lacp}))
    one, other = (_identity(spec, drill).digests["fabric"] for spec in specs)
    assert one == other


def test_the_command_names_the_hosts_and_refuses_a_profile_that_is_none() -> None:
    done = CliRunner().invoke(command_line, ["drill", "validate", "link-down", "--profile", "production"])
    assert done.exit_code == 0
    assert "run on tiny (hpn) with production hosts, not on its own fabric" in done.output
    refused = CliRunner().invoke(command_line, ["drill", "run", "link-down", "--profile", "prod"])
    assert refused.exit_code == 2
    assert "'prod' is not one of 'lab', 'production'" in refused.output
