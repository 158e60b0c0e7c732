"""Profiles of hosts: what ``profile: production`` sets, what a topology may still set, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpn.results.run.fabric import fabric_from, fabric_json
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.profiles import PRODUCTION, PROFILES
from hpn.testbed.fabric.spec import FabricSpec, LacpSpec


def loaded(tmp_path: Path, text: str) -> FabricSpec:
    (tmp_path / "net.yaml").write_text(text)
    return load_topology(str(tmp_path / "net.yaml"))


def values(spec: FabricSpec) -> tuple[str, str, int | None, int]:
    lacp = spec.lacp
    return lacp.rate, lacp.hosts_ask, lacp.miimon_ms, lacp.aggregate_wait_ms


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ("fast", "fast", None, 200)),
        ("profile: lab\n", ("fast", "fast", None, 200)),
        ("lacp: {rate: slow}\n", ("slow", "slow", None, 200)),
        ("lacp: {host_rate: slow}\n", ("fast", "slow", None, 200)),
        ("profile: production\n", ("slow", "slow", 100, 2000)),
        ("profile: production\nlacp: {rate: fast}\n", ("fast", "slow", 100, 2000)),
        ("profile: production\nlacp: {rate: fast, host_rate: fast}\n", ("fast", "fast", 100, 2000)),
        ("profile: production\nlacp: {miimon_ms: 10, aggregate_wait_ms: 0}\n", ("slow", "slow", 10, 0)),
    ],
)
def test_a_profile_gives_the_values_that_a_topology_does_not_set(
    tmp_path: Path, text: str, found: tuple[str, str, int | None, int]
) -> None:
    assert values(loaded(tmp_path, f"preset: tiny\n{text}")) == found


def test_a_profile_is_replaced_whole_by_a_later_layer_as_its_values_count_as_not_set(tmp_path: Path) -> None:
    spec = loaded(tmp_path, "preset: tiny\nprofile: production\nlacp: {miimon_ms: 50}\n")
    written = spec.model_dump(exclude_unset=True)
    assert written["lacp"] == {"miimon_ms": 50}
    assert FabricSpec.model_validate(written) == spec
    assert values(FabricSpec.model_validate({**written, "profile": "lab"})) == ("fast", "fast", 50, 200)


def test_a_run_folder_holds_what_was_in_force_and_that_of_the_lab_is_as_before(tmp_path: Path) -> None:
    for profile in PROFILES:
        spec = loaded(tmp_path, f"preset: tiny\nprofile: {profile}\n")
        fabric = build(spec)
        content = fabric_json(fabric)
        assert fabric_from(tmp_path / "fabric.json", content) == fabric
        stored = json.loads(content)["spec"]
        assert ("profile" in stored, "miimon_ms" in stored["lacp"]) == (profile == PRODUCTION,) * 2


def test_what_a_profile_cannot_be_is_refused_with_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"net.yaml:2: profile is 'produciton'; write one of lab, production"):
        loaded(tmp_path, "preset: tiny\nprofile: produciton\n")
    told = r"net.yaml:3: lacp.miimon_ms is 0, but Linux bonding .*; write 1 or more, or lag: nft"
    with pytest.raises(InputError, match=told):
        loaded(tmp_path, "preset: tiny\nprofile: production\nlacp: {miimon_ms: 0}\n")
    assert loaded(tmp_path, "preset: tiny\nlag: nft\nlacp: {miimon_ms: 0}\n").lacp.miimon_ms == 0


def test_every_value_of_a_profile_is_one_that_the_file_could_set() -> None:
    for profile in PROFILES.values():
        assert values(FabricSpec(profile=profile.name)) == values(FabricSpec(lacp=LacpSpec(**dict(profile.lacp))))
