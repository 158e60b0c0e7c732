"""Methods of location on simulated probes: whom they name, on fabrics that nobody chose too."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from hpn.failover.locating.methods import METHODS
from hpn.failover.locating.parts import Part, PartKind
from hpn.scenarios.model.router import unknown_paths
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.files.document import Plain
from tests.failover.locating.simulated import Probed, probed
from tests.strangers import draw
from tests.strangers.draw import spec_of

UPLINK = "p0.s0.t0.0-p0.a0.1"
UP = Part(PartKind.DIRECTION, UPLINK, True)
LINK = Part(PartKind.LINK, UPLINK)


FABRIC = build(PRESETS["tiny"].spec)


@pytest.fixture(scope="module")
def tiny() -> Probed:
    return probed(FABRIC)


def test_probes_cross_every_link_and_tell_every_direction_apart(tiny: Probed) -> None:
    assert tiny.suspects.unseen == ()
    for suspect in tiny.suspects.suspects:
        assert sum(part.kind is PartKind.DIRECTION for part in suspect.parts) <= 1, str(suspect)


def test_without_probes_across_rails_an_uplink_and_the_downlink_beyond_it_are_one_suspect() -> None:
    along = probed(build(PRESETS["tiny"].spec), "near-and-far")
    suspect = along.suspects.of(UP)
    assert suspect is not None
    assert [str(part) for part in suspect.parts] == [
        "p0.s0.t0.0-p0.a0.1 upwards",
        "p0.s1.t0.0-p0.a0.1 downwards",
    ]


@pytest.mark.parametrize("method", METHODS)
def test_a_healthy_network_accuses_nobody(tiny: Probed, method: str) -> None:
    assert list(METHODS[method].load()(tiny.seen(30, {}))) == []


@pytest.mark.parametrize(
    ("method", "part"),
    [
        ("likelihood", UP),
        ("likelihood", LINK),
        ("likelihood", Part(PartKind.NODE, "p0.s0.t0.0")),
        ("voting", LINK),
        ("regression", UP),
    ],
)
def test_a_part_that_loses_everything_is_named_first(tiny: Probed, method: str, part: Part) -> None:
    first = METHODS[method].load()(tiny.seen(1, {part: 1.0}))[0]
    assert part in first.suspect.parts
    assert method == "voting" or first.loss == pytest.approx(1, abs=0.01)


def test_one_percent_is_estimated(tiny: Probed) -> None:
    (found,) = METHODS["likelihood"].load()(tiny.seen(30, {UP: 0.01}))
    assert UP in found.suspect.parts
    assert found.loss == pytest.approx(0.01, rel=0.3)
    assert found.confidence > 0.95


def test_two_faults_are_named_both(tiny: Probed) -> None:
    other = Part(PartKind.DIRECTION, "p0.s1.h1.r1.1", False)
    found = METHODS["likelihood"].load()(tiny.seen(10, {UP: 0.05, other: 0.3}))
    assert {part for each in found for part in each.suspect.parts} >= {UP, other}
    assert len(found) == 2


@pytest.mark.parametrize(
    ("keys", "faults"),
    [
        ({"architecture": "dual-tor-clos"}, ("p0.s0.h1.r0.0", "p0.s0.t0.0-p0.a0.1")),
        ({"architecture": "single-tor"}, ("p0.s1.h1.r1.0", "p0.s1.t1.0-p0.a0.0")),
        ({"architecture": "rail-only"}, ("p0.s1.t0.0-p0.r0.a1", "p0.s1.t0.0-p0.r0.a0")),
        ({}, ("p0.s0.h0.r0.1", "p0.s0.h0.r1.1")),
    ],
)
@pytest.mark.parametrize("share", [0.1, 0.01])
def test_two_links_of_one_node_are_named_and_not_the_node(
    keys: dict[str, Plain], faults: tuple[str, str], share: float
) -> None:
    """The node alone explains more than either link, and less than both."""
    probes = probed(build(spec_of({"preset": "tiny", **keys})))
    found = METHODS["likelihood"].load()(probes.seen(4, {Part(PartKind.LINK, name): share for name in faults}))
    named = [{part.name for part in each.suspect.parts} for each in found]
    assert len(named) == 2
    assert all(any(name in names for names in named) for name in faults), named
    assert all(each.confidence > 0.8 for each in found)


def test_regression_fits_the_rates_of_two_links_on_the_same_paths(tiny: Probed) -> None:
    """Some paths cross both, so that each rate depends on the other's."""
    access = Part(PartKind.DIRECTION, "p0.s0.h0.r0.0", True)
    found = METHODS["regression"].load()(tiny.seen(100, {UP: 0.3, access: 0.2}))
    rates = {part: each.loss for each in found for part in each.suspect.parts}
    assert rates[UP] == pytest.approx(0.3, abs=0.02)
    assert rates[access] == pytest.approx(0.2, abs=0.02)
    assert len(found) == 2


def test_a_fault_in_one_hash_bucket_is_named(tiny: Probed) -> None:
    """One path of four across the part loses everything, the others nothing."""
    seen = tiny.seen(10, {})
    suspect = tiny.suspects.of(Part(PartKind.NODE, "p0.s0.t0.0"))
    assert suspect is not None
    crossing = tiny.suspects.across(suspect).nonzero()[0]
    for at in crossing[::4]:
        seen.lost[at] = seen.sent[at]
    assert METHODS["likelihood"].load()(seen)[0].suspect is suspect


@pytest.mark.parametrize("bucket", range(4))
def test_the_flows_of_a_link_s_bucket_name_it_once_they_are_three(tiny: Probed, bucket: int) -> None:
    """With fewer, other links are on all the lossy paths: then no answer is sure."""
    method = METHODS["likelihood"]
    seen = tiny.in_bucket(UP, 4, bucket, FABRIC.link(UPLINK).upper.ifindex)
    found = method.load()(seen)
    hit = int((seen.lost > 0).sum())
    if hit >= 3:
        assert (UP in found[0].suspect.parts, found[0].confidence >= method.sure) == (True, True)
    else:
        assert all(each.confidence < method.sure for each in found)


@pytest.mark.parametrize("method", ["likelihood", "voting"])
def test_bad_observations_as_many_as_healthy_paths_have_accuse_nobody(tiny: Probed, method: str) -> None:
    seen = replace(tiny.seen(30, {}), healthy=0.03)
    seen.lost[:] = np.random.default_rng(7).binomial(seen.sent, seen.healthy)
    assert list(METHODS[method].load()(seen)) == []
    slow = replace(tiny.seen(30, {UP: 0.5}), healthy=0.03)
    slow.lost[:] = np.maximum(slow.lost, seen.lost)
    first = METHODS[method].load()(slow)[0]
    assert UP in first.suspect.parts or LINK in first.suspect.parts


def _strangers(count: int) -> list[tuple[int, Fabric]]:
    """Fabrics whose paths the model knows and on which somebody has a partner."""
    found: list[tuple[int, Fabric]] = []
    seed = 0
    while len(found) < count:
        seed += 1
        fabric = build(draw.spec_of(draw.fabric(seed)))
        if not unknown_paths(fabric.spec):
            found.append((seed, fabric))
    return found


def test_on_any_fabric_a_direction_that_loses_everything_is_named() -> None:
    tried = 0
    for seed, fabric in _strangers(25):
        try:
            probes = probed(fabric)
        except InputError:
            continue  # nobody has a partner
        seen = sorted({way for path in probes.suspects.paths for way in path})
        for link, upward in random.Random(seed).sample(seen, min(6, len(seen))):
            part = Part(PartKind.DIRECTION, link, upward)
            found = METHODS["likelihood"].load()(probes.seen(2, {part: 1.0}))
            assert found, f"seed {seed}: {part}"
            assert part in found[0].suspect.parts, f"seed {seed}: {part} told as {found[0].suspect}"
            assert len(found) == 1, f"seed {seed}: {part} and {found[1].suspect}"
            tried += 1
    assert tried > 60
