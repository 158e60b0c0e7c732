"""How evenly paths are spread over links: figures by hand, bounds by hypothesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.failover.analysis.placement import DataPath, TierSpread, spreads
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.fluid.forwarding import Forwarding

AGGS = 4
FABRIC = build(FabricSpec(name="two", segments=2, hosts=2, rails=1, aggs=AGGS))


def way(number: int, source: str, target: str, plane: int, agg: int, fabric: Fabric = FABRIC) -> DataPath:
    """Up to an Agg and down again."""
    up, down = fabric.nic(source).links[plane], fabric.nic(target).links[plane]
    between = {
        link.lower.node: link.name
        for link in fabric.links
        if link.kind is LinkKind.FABRIC and link.upper.node == f"p0.a{plane}.{agg}"
    }
    links = (up.name, between[up.upper.node], between[down.upper.node], down.name)
    return DataPath(number, f"{source}>{target}#{number}", links, None)


def tiers(ways: list[DataPath], down: frozenset[str] = frozenset()) -> dict[str, TierSpread]:
    return {each.tier: each for each in spreads(FABRIC, ways, lambda link: link not in down)}


def test_one_queue_pair_on_every_link_is_even_in_every_tier() -> None:
    found = tiers([way(i, "p0.s0.h0.r0", "p0.s1.h0.r0", i % 2, i // 2) for i in range(2 * AGGS)])
    assert list(found) == ["host up", "tor up", "agg down", "tor down"]
    assert [(each.links, each.crossings, each.most) for each in found.values()] == [
        (2, 8, 4),
        (8, 8, 1),
        (8, 8, 1),
        (2, 8, 4),
    ]
    assert {(each.imbalance, each.fairness) for each in found.values()} == {(1.0, 1.0)}
    assert [each.polarisation for each in found.values()] == [0.0, 0.0, None, None]


def test_all_on_one_uplink_is_as_uneven_as_can_be_and_links_of_others_are_none_of_it() -> None:
    found = tiers([way(i, "p0.s0.h0.r0", "p0.s1.h0.r0", 0, 2) for i in range(3)])["tor up"]
    assert found.busiest == "p0.s0.t0.0-p0.a0.2"
    assert (found.links, found.most) == (AGGS, 3)
    assert (found.imbalance, found.polarisation) == (AGGS, 1.0)
    assert found.fairness == pytest.approx(1 / AGGS)


def test_a_link_that_is_down_is_no_choice() -> None:
    ways = [way(i, "p0.s0.h0.r0", "p0.s1.h0.r0", 0, i) for i in range(AGGS - 1)]
    assert tiers(ways)["tor up"].polarisation == pytest.approx(0)
    assert tiers(ways)["tor up"].imbalance == pytest.approx(4 / 3)
    found = tiers(ways, frozenset({f"p0.s0.t0.0-p0.a0.{AGGS - 1}"}))["tor up"]
    assert (found.links, found.imbalance, found.fairness) == (AGGS - 1, 1.0, 1.0)


def test_two_queue_pairs_each_way_do_not_share_a_cable() -> None:
    there, back = (
        way(0, "p0.s0.h0.r0", "p0.s1.h0.r0", 0, 0),
        way(1, "p0.s1.h0.r0", "p0.s0.h0.r0", 0, 0),
    )
    assert {each.most for each in tiers([there, back]).values()} == {1}


def test_a_path_that_ends_early_counts_for_the_links_it_crosses() -> None:
    whole = way(0, "p0.s0.h0.r0", "p0.s1.h0.r0", 0, 0)
    assert list(tiers([DataPath(0, "cut", whole.links[:1], "no route")])) == ["host up"]
    assert tiers([DataPath(0, "cut", (), "no active port")]) == {}


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, AGGS - 1)), min_size=1, max_size=24))
def test_figures_keep_their_bounds_and_count_every_crossing(choices: list[tuple[int, int]]) -> None:
    ways = [way(i, "p0.s0.h0.r0", "p0.s1.h1.r0", plane, agg) for i, (plane, agg) in enumerate(choices)]
    for each in tiers(ways).values():
        assert each.crossings == len(choices)
        assert 1 <= each.imbalance <= each.links
        assert 1 / each.links - 1e-9 <= each.fairness <= 1 + 1e-9
        assert each.polarisation is None or 0 <= each.polarisation <= 1
    most = max(Counter(choices).values())
    assert tiers(ways)["tor up"].most == most


CLOS = build(FabricSpec(name="clos", architecture="dual-tor-clos", segments=2, hosts=2, rails=1, aggs=2))


def clos_way(number: int, agg: int, tor: int) -> DataPath:
    """From the first segment's first ToR over an Agg to one of the two ToRs of the target."""
    middle = (f"p0.s0.t0.0-p0.a0.{agg}", f"p0.s1.t0.{tor}-p0.a0.{agg}")
    return DataPath(number, f"#{number}", ("p0.s0.h0.r0.0", *middle, f"p0.s1.h0.r0.{tor}"), None)


@pytest.mark.parametrize(
    ("tor_by", "alike"),
    [(lambda number: number % 2, 1.0), (lambda number: number // 2 % 2, 0.0)],
    ids=["an Agg takes one ToR", "an Agg takes both in turn"],
)
def test_an_agg_below_which_two_tors_lead_to_a_nic_can_polarise(tor_by: Callable[[int], int], alike: float) -> None:
    ways = [clos_way(number, number % 2, tor_by(number)) for number in range(8)]
    found = {each.tier: each for each in spreads(CLOS, ways, lambda _link: True)}
    assert [found[tier].polarisation for tier in ("tor up", "agg down", "tor down")] == [0.0, alike, None]
    assert found["agg down"].imbalance == 1 + alike


def test_a_tor_that_lost_the_nic_is_no_choice_of_an_agg() -> None:
    ways = [clos_way(number, number % 2, 0) for number in range(8)]
    lost = {each.tier: each for each in spreads(CLOS, ways, lambda link: link != "p0.s1.h0.r0.1")}
    assert lost["agg down"].polarisation is None
    both = {each.tier: each for each in spreads(CLOS, ways, lambda _link: True)}
    assert both["agg down"].polarisation == 1.0


def placed(architecture: str, seeds: Literal["one", "per-switch"]) -> dict[str, TierSpread]:
    """Of 16 queue pairs from each of 8 hosts to each in the other segment, as the switches' hashes place them."""
    fabric = build(FabricSpec(architecture=architecture, segments=2, hosts=8, rails=1, aggs=4, ecmp_seeds=seeds))
    apart = [pair for pair in permutations(fabric.nics, 2) if pair[0].host.split(".")[1] != pair[1].host.split(".")[1]]
    several = [(src, dst, port, 0xC000 + 37 * number) for src, dst in apart for port in (0, 1) for number in range(16)]
    src, dst, ports, sports = (list(each) for each in zip(*several, strict=True))
    found = Forwarding(fabric).walk(src, dst, ports, sports)
    assert found.arrives.all()
    ways = [
        DataPath(at, "", tuple(fabric.links[link // 2].name for link in links if link >= 0), None)
        for at, links in enumerate(found.links.tolist())
    ]
    return {each.tier: each for each in spreads(fabric, ways, lambda _link: True)}


def test_one_seed_for_both_tiers_of_a_clos_polarises_down_from_the_aggs_and_seeds_of_their_own_do_not() -> None:
    one, own = placed("dual-tor-clos", "one"), placed("dual-tor-clos", "per-switch")
    assert one["agg down"].polarisation == 1.0
    assert own["agg down"].polarisation == pytest.approx(0, abs=0.02)
    assert one["tor up"].polarisation == pytest.approx(own["tor up"].polarisation, abs=0.02)


def test_two_planes_have_no_second_hash_that_could_polarise() -> None:
    found = placed("hpn", "one")
    assert found["agg down"].polarisation is None
    assert found["tor up"].polarisation == pytest.approx(0, abs=0.02)
