"""Mistakes in drawn networks as far as ``hpn plan`` goes: it names what it can, and blames nothing that is correct."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.wired.config_words import words_of
from hpn.testbed.kernel.process import programs
from hpn.testbed.routing.daemons import config_problems
from hpn.testbed.routing.own.plan_notes import plan_notes
from tests.misconfigured.planted import MISCONFIGURATIONS, Where
from tests.misconfigured.repository import Repository
from tests.misconfigured.variants import MANY, variants

VARIANTS = dict(variants())
SEEDS = range(3)


def _notes(repository: Repository, folder: Path) -> list[str]:
    return list(plan_notes(load_fabric(str(repository.write(folder)))))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MISCONFIGURATIONS)
def test_plan_names_the_mistakes_that_it_can_and_no_other(name: str, seed: int, tmp_path: Path) -> None:
    entry = MISCONFIGURATIONS[name]
    assert _notes(entry.correct(seed), tmp_path / "correct") == []
    planted = entry.planted(seed)
    notes = _notes(planted.repository, tmp_path / "planted")
    assert any(planted.element in note for note in notes) == (entry.named is Where.PLAN), notes
    assert bool(notes) == (entry.named is Where.PLAN), notes


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_is_blamed_in_a_correct_variant(name: str, tmp_path: Path) -> None:
    assert _notes(VARIANTS[name], tmp_path) == []


def test_the_variants_differ_in_all_that_the_dice_choose() -> None:
    assert len(VARIANTS) == MANY
    assert len({repr(each.configs) for each in VARIANTS.values()}) == MANY
    nets = [each.net for each in VARIANTS.values()]
    assert {net.scheme for net in nets} == {"unique", "spines", "tiers", "racks"}
    assert {frozenset(net.daemons.values()) for net in nets} == {
        frozenset({"frr"}),
        frozenset({"bird"}),
        frozenset({"frr", "bird"}),
    }
    assert {net.planes for net in nets} == {1, 2}
    assert {net.style.filters for net in nets} == {"none", "prefix-list", "route-map"}


@pytest.mark.parametrize("name", [*VARIANTS][::5])
def test_the_programs_take_a_variant(name: str, tmp_path: Path) -> None:
    if programs.find("vtysh") is None or programs.find("bird") is None:
        pytest.skip("FRR's vtysh or BIRD is not installed")
    assert config_problems(load_fabric(str(VARIANTS[name].write(tmp_path)))) == []


def test_at_least_fourteen_of_twenty_mistakes_cost_something() -> None:
    assert len(MISCONFIGURATIONS) >= 20
    assert sum(entry.named is not Where.NOWHERE for entry in MISCONFIGURATIONS.values()) >= 14


@pytest.mark.parametrize(
    ("file", "line", "times"),
    [
        ("a/frr.conf", "  neighbor 10.0.0.1 allowas-in 2", 2),
        ("a/frr.conf", "  neighbor F allowas-in", 3),
        ("a/frr.conf", "  neighbor F allowas-in origin", 3),
        ("a/frr.conf", "  ! neighbor F allowas-in", 0),
        ("a/bird.conf", "  allow local as 1;", 1),
        ("a/bird.conf", "  allow local as;", 255),
        ("a/bird.conf", "  # allow local as;", 0),
    ],
)
def test_how_often_a_switch_takes_its_own_asn_is_read(file: str, line: str, times: int) -> None:
    assert words_of(file, f"{line}\n").own_asn_times == times
