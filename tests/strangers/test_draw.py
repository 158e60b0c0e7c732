"""Drawn fabrics and drills: valid, small enough, the same for the same seed, and of every kind."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hpn.scenarios.drill.load import drill_from
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import Plain, parse
from tests.strangers import draw

_SEEDS = range(300)


@cache
def _drills() -> list[dict[str, Plain]]:
    return [draw.drill(seed) for seed in _SEEDS]


def test_every_drawn_drill_is_one_that_hpn_takes_on_a_fabric_of_a_guests_size() -> None:
    for seed, drill in zip(_SEEDS, _drills(), strict=True):
        made = drill_from(parse(draw.text_of(drill), f"seed {seed}"), Path())
        assert made.timeline.faults
        assert draw.fits(build(made.topology)), f"seed {seed}"
        assert made.timeline.end_ns <= 20 * 10**9


def test_a_seed_draws_the_same_again() -> None:
    assert [draw.drill(seed) for seed in range(20)] == [draw.drill(seed) for seed in range(20)]
    assert draw.drill(1) != draw.drill(2)


def test_every_architecture_datapath_daemon_and_fault_is_drawn() -> None:
    drills = _drills()
    topologies = [each["topology"] for each in drills if isinstance(each["topology"], dict)]
    assert {each["architecture"] for each in topologies} == {*ARCHITECTURES}
    assert {each["lag"] for each in topologies} == {"nft", "kernel"}
    bgp = [each["bgp"] for each in topologies if isinstance(each["bgp"], dict)]
    assert {"frr"} < {str(each.get("daemon", "bird")) for each in bgp}
    assert any("bfd" in each for each in bgp)
    assert any("bfd" not in each for each in bgp)
    text = "".join(map(draw.text_of, drills))
    kinds = ("link-down", "link-flap", "admin-down", "nic-down", "host-down", "tor-crash", "tor-drain", "agg-crash")
    for kind in (*kinds, "core-crash", "plane-down", "silent-drop"):
        assert f"fault: {kind}" in text, kind


def test_a_lighter_drill_differs_in_its_load_alone() -> None:
    drill = draw.drill(3)
    lighter = draw.lighter(drill)
    assert {key for key in drill if drill[key] != lighter[key]} == {"workload"}
