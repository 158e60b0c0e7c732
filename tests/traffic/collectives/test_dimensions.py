"""AllReduce along dimensions: every message goes to a neighbour, links of all dimensions carry their share."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.collectives.compose import Composer
from hpn.traffic.collectives.locations import Place
from hpn.traffic.collectives.registry import collective
from hpn.traffic.job.placement import place
from tests.traffic.collectives.memory import INSIDE, MTU, Outcome, shuffled

Grid = tuple[int, ...]
GRIDS = st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda sizes: 2 <= prod(sizes) <= 24).map(tuple)
ALGORITHMS = ("dimension-rings", "dimension-direct")


def _places(sizes: Grid, hosts: int = 1, rails: int = 1) -> list[Place]:
    """``hosts`` to each switch of a grid, the last coordinate fastest."""
    return [
        Place(f"h{number}.{host}", rail, f"h{number}.{host}.r{rail}", f"10.{rail}.{number}.{host}", number, at)
        for number, at in enumerate(product(*map(range, sizes)))
        for host in range(hosts)
        for rail in range(rails)
    ]


def _run(places: list[Place], algorithm: str, size: int, slices: int = 1, seed: int = 0) -> Outcome:
    composer = Composer(places, MTU, INSIDE)
    composer.collective(collective("all-reduce", algorithm), range(len(places)), size, "x", slices=slices)
    return shuffled(composer.programs(), seed)


def _apart(one: Place, other: Place) -> list[tuple[int, int]]:
    """Return the dimensions in which two places differ, with the steps between them."""
    both = zip(one.coordinates, other.coordinates, strict=True)
    return [(dimension, b - a) for dimension, (a, b) in enumerate(both) if a != b]


@given(
    GRIDS, st.integers(1, 2), st.integers(1, 2), st.sampled_from(ALGORITHMS), st.integers(1, 40_000), st.integers(1, 3)
)
@settings(max_examples=60)
def test_the_sum_is_right_on_any_grid_and_every_byte_stays_in_a_line(
    sizes: Grid, hosts: int, rails: int, algorithm: str, size: int, slices: int
) -> None:
    places = _places(sizes, hosts, rails)
    outcome = _run(places, algorithm, size, slices, seed=size)
    assert outcome.wrong == 0
    assert sum(outcome.wire.values()) + sum(outcome.local.values()) == 2 * (len(places) - 1) * size
    for source, target in outcome.wire:
        assert len(_apart(places[source], places[target])) + (places[source].host[-1] != places[target].host[-1]) == 1
    assert all(places[source].rail == places[target].rail == rail for source, target, rail in outcome.rails)


@pytest.mark.parametrize("sizes", [(4, 3), (5,), (3, 3, 2)])
def test_rings_on_a_torus_reach_neighbours_only_and_load_both_directions_alike(sizes: Grid) -> None:
    places = _places(sizes)
    size = 2 * len(sizes) * len(places) * MTU
    outcome = _run(places, "dimension-rings", size)
    loads: dict[int, Counter[int]] = {}
    for (source, target), sent in outcome.wire.items():
        ((dimension, step),) = _apart(places[source], places[target])
        forward = step in {1, 1 - sizes[dimension]}
        assert forward or step in {-1, sizes[dimension] - 1}
        loads.setdefault(dimension, Counter())[1 if forward else -1] += sent
    assert sorted(loads) == list(range(len(sizes)))
    for dimension, load in loads.items():
        assert sizes[dimension] == 2 or load[1] == load[-1]


def test_each_dimension_is_the_first_of_a_part_so_that_all_links_carry_at_once() -> None:
    """On a 4 x 3 torus a link carries this much: as first dimension 3/4 or 2/3 of a part, as second of what is left."""
    places, part = _places((4, 3)), 12 * MTU
    sent = _run(places, "dimension-rings", 4 * part).wire
    along_first, along_second = (3 / 4 + 3 / 4 / 3) * 2, (2 / 3 + 2 / 3 / 4) * 2
    assert {sent[0, 3], sent[0, 9]} == {along_first * part}
    assert {sent[0, 1], sent[0, 2]} == {along_second * part}


def test_in_a_full_mesh_everyone_sends_to_everyone_of_its_line_alike() -> None:
    places, part = _places((4, 3)), 12 * MTU
    sent = _run(places, "dimension-direct", 2 * part).wire
    assert {sent[0, target] for target in (3, 6, 9)} == {(1 / 4 + 1 / 4 / 3) * 2 * part}
    assert {sent[0, target] for target in (1, 2)} == {(1 / 3 + 1 / 3 / 4) * 2 * part}
    assert len([pair for pair in sent if pair[0] == 0]) == 3 + 2


def test_the_lab_tells_the_coordinates_of_its_grid_or_pod_and_segment() -> None:
    torus = FabricSpec(architecture="torus", segments=6, pods=2, hosts=2, dimensions=[4, 3], bgp={"asn": "per-switch"})
    at = [each.coordinates for each in place(build(torus))]
    assert at == [point for point in product(range(4), range(3)) for _ in range(2)]
    assert {each.coordinates for each in place(build(FabricSpec(segments=3)))} == {(0, 0), (0, 1), (0, 2)}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_group_that_is_no_whole_grid_is_refused_with_its_shape(algorithm: str) -> None:
    places = _places((4, 3))[:7]
    composer = Composer(places, MTU, INSIDE)
    with pytest.raises(InputError, match="whole grid, and these 7 ranks are some of 3 x 3"):
        composer.collective(collective("all-reduce", algorithm), range(7), 1000, "x")
