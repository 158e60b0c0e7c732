"""Direct networks, counted and measured: sizes as published, distances, refusals with the number to write."""

from __future__ import annotations

from collections import Counter
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.architectures.dragonfly import dragonfly_pairs
from hpn.testbed.fabric.architectures.full_mesh import everyone
from hpn.testbed.fabric.architectures.grid import grid_pairs
from hpn.testbed.fabric.architectures.slim_fly import slim_fly_pairs, slim_fly_sizes
from hpn.testbed.fabric.architectures.torus import ring
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.exporting import topology_text
from hpn.testbed.fabric.field import Field, is_prime_power
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import topology_in
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.document import parse
from hpn.testbed.routing.distances import Adjacency

DIRECT = [name for name, preset in PRESETS.items() if ARCHITECTURES[preset.spec.architecture].direct]


def network(preset: str, **changes: object) -> Fabric:
    return build(FabricSpec.model_validate({**PRESETS[preset].spec.model_dump(exclude_unset=True), **changes}))


def degrees(pairs: object) -> Counter[int]:
    return Counter(end for pair in pairs for end in pair)  # type: ignore[attr-defined]


def diameter(fabric: Fabric) -> int:
    adjacency = Adjacency(fabric)
    return max(max(adjacency.joined(node.name).values()) for node in fabric.switches)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 6), min_size=1, max_size=4).filter(lambda sizes: prod(sizes) <= 200))
def test_a_torus_has_two_links_along_each_dimension_and_one_along_a_dimension_of_two(sizes: list[int]) -> None:
    pairs = grid_pairs(sizes, ring)
    wanted = sum(1 if size == 2 else 2 for size in sizes)
    assert set(degrees(pairs).values()) == {wanted}
    assert len(pairs) == prod(sizes) * wanted // 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 6), min_size=1, max_size=4).filter(lambda sizes: prod(sizes) <= 200))
def test_a_full_mesh_has_a_link_to_all_that_differ_in_one_coordinate(sizes: list[int]) -> None:
    pairs = grid_pairs(sizes, everyone)
    assert set(degrees(pairs).values()) == {sum(size - 1 for size in sizes)}
    for one, other in pairs:
        assert sum(a != b for a, b in zip(_coordinates(one, sizes), _coordinates(other, sizes), strict=True)) == 1


def _coordinates(number: int, sizes: list[int]) -> list[int]:
    found = []
    for size in reversed(sizes):
        number, at = divmod(number, size)
        found.append(at)
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4))
def test_every_two_groups_of_a_dragonfly_have_one_link(switches: int, global_links: int) -> None:
    pairs = list(dragonfly_pairs(switches, global_links))
    groups = Counter(frozenset((one // switches, other // switches)) for one, other in pairs)
    between = {ends: count for ends, count in groups.items() if len(ends) == 2}
    many = switches * global_links + 1
    assert len(between) == many * (many - 1) // 2
    assert set(between.values()) == {1}
    assert set(degrees(pairs).values()) == {switches - 1 + global_links}
    assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize("q", [q for q in slim_fly_sizes() if q <= 13])
def test_any_two_switches_of_a_slim_fly_are_at_most_two_links_apart(q: int) -> None:
    """Besta and Hoefler, SC 2014, section II: 2q^2 routers, network radix k' = (3q - d) / 2 where q = 4w + d."""
    pairs = list(slim_fly_pairs(q))
    radix = (3 * q - {0: 0, 1: 1, 3: -1}[q % 4]) // 2
    assert len(pairs) == len(set(pairs)) == q * q * radix
    assert Counter(degrees(pairs).values()) == {radix: 2 * q * q}
    near: dict[int, set[int]] = {}
    for one, other in pairs:
        near.setdefault(one, {one}).add(other)
        near.setdefault(other, {other}).add(one)
    assert all(len(set().union(*(near[each] for each in mine))) == 2 * q * q for mine in near.values())


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 9, 16, 25, 27, 49, 64])
def test_a_field_is_one(size: int) -> None:
    field = Field(size)
    elements = range(size)
    assert {field.power(n) for n in range(size - 1)} == set(elements) - {0}
    for one in elements:
        assert {field.plus(one, other) for other in elements} == set(elements)
        assert all(field.plus(field.minus(one, other), other) == one for other in elements)
        assert one == 0 or {field.times(one, other) for other in elements} == set(elements)
    few = [*elements][:: max(1, size // 8)]
    for a in few:
        assert all(
            field.times(a, field.plus(b, c)) == field.plus(field.times(a, b), field.times(a, c))
            for b in few
            for c in few
        )


def test_only_powers_of_one_prime_have_a_field() -> None:
    assert [number for number in range(2, 30) if not is_prime_power(number)] == [
        6, 10, 12, 14, 15, 18, 20, 21, 22, 24, 26, 28,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="12 is no power of a prime"):
        Field(12)


def test_a_dragonfly_of_the_paper_has_its_72_terminals() -> None:
    """Kim et al., ISCA 2008, figure 5: p = h = 2, a = 4, 36 switches in nine groups, N = 72; radix 7, diameter 3."""
    fabric = network("tiny-dragonfly", pods=9, segments=4, hosts=2, global_links=2)
    found = inventory(fabric)
    assert (found.gpus, found.tors, found.link_count(LinkKind.MESH)) == (72, 36, 9 * 6 + 36)
    assert {(b.down_ports, b.up_ports) for b in found.budgets} == {(2, 5)}
    assert diameter(fabric) == 3


def test_a_slim_fly_of_the_paper_has_its_10830_endpoints() -> None:
    """Besta and Hoefler, SC 2014, section V: q = 19, 722 routers, k' = 29, p = 15, k = 44."""
    found = inventory(network("tiny-slim-fly", pods=19, segments=38, hosts=15))
    assert (found.gpus, found.tors, found.link_count(LinkKind.MESH)) == (10_830, 722, 722 * 29 // 2)
    assert {b.down_ports + b.up_ports for b in found.budgets} == {44}


def test_the_hoffman_singleton_graph_is_the_slim_fly_of_five() -> None:
    fabric = network("tiny-slim-fly", pods=5, segments=10)
    assert (len(fabric.switches), diameter(fabric)) == (50, 2)


def test_a_tpu_v4_pod_has_4096_chips_with_six_links() -> None:
    """arXiv 2304.01433: 64 cubes of 4 x 4 x 4; the largest torus of them is 16 x 16 x 16."""
    found = inventory(network("tiny-torus", pods=16, segments=256, dimensions=[16, 16, 16]))
    assert (found.gpus, found.tors, found.link_count(LinkKind.MESH)) == (4096, 4096, 3 * 4096)
    assert {b.up_ports for b in found.budgets} == {6}


def test_a_ub_mesh_pod_has_1024_npus_in_four_dimensions() -> None:
    """arXiv 2503.20377: 8 x 8 NPUs in a rack, 4 x 4 racks in a pod."""
    fabric = network("tiny-ub-mesh", pods=16, segments=64, dimensions=[4, 4, 8, 8])
    found = inventory(fabric)
    assert (found.gpus, found.link_count(LinkKind.MESH)) == (1024, 1024 * (3 + 3 + 7 + 7) // 2)
    racks = Counter(
        fabric.node(link.lower.node).pod == fabric.node(link.upper.node).pod
        for link in fabric.links
        if link.kind is LinkKind.MESH
    )
    assert racks[False] == 1024 * 6 // 2, "links between racks are those of the first two dimensions"


@pytest.mark.parametrize("preset", DIRECT)
def test_a_direct_network_comes_back_from_its_own_file(preset: str) -> None:
    fabric = network(preset)
    again = build(topology_in(parse(topology_text(fabric), "mine.yaml"), "mine"))
    assert (again.nodes, again.links, again.nics) == (fabric.nodes, fabric.links, fabric.nics)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("preset: tiny-torus\nsegments: 4\ndimensions: [4, 1]",
         "mine.yaml:3: dimensions[1] is 1, and a torus of one switch along a dimension joins nothing; write 2 or more"),
        ("preset: tiny-torus\nsegments: 1\ndimensions: [1]", "dimensions[0] is 1, and a torus of one switch"),
        ("preset: tiny-torus\ndimensions: [4, 4]", "4 x 4 dimensions have 16; write segments: 16"),
        ("preset: tiny-torus\npods: 3\ndimensions: [5, 5]", "have 25; write pods: 1 and segments: 25"),
        ("architecture: full-mesh\nbgp: {asn: per-switch}",
         "mine.yaml:1: architecture full-mesh needs dimensions, the switches along each; write dimensions: [1, 2]"),
        ("preset: tiny-torus\nbgp: {asn: per-tier}",
         "mine.yaml:2: bgp.asn is per-tier, but all switches are of one tier and would refuse each other's routes;"),
        ("preset: tiny-torus\naggs: 4", "mine.yaml:2: aggs means nothing to torus: its switches are joined with each"),
        ("preset: tiny-dragonfly\nsegments: 4",
         "mine.yaml:1: pods is 4, but 4 switches with 1 global_links join a group with 4 others; write 5"),
        ("preset: tiny-slim-fly\npods: 28\nsegments: 56",
         "mine.yaml:2: pods is 28, which is the q of a Slim Fly and a power of a prime, 4w - 1, 4w or 4w + 1; write "
         "27 or 29"),
        ("preset: tiny-slim-fly\npods: 6\nsegments: 12", "4w or 4w + 1; write 5 or 7"),
        ("preset: tiny-slim-fly\npods: 2\nsegments: 4", "4w or 4w + 1; write 3"),
        ("preset: tiny-slim-fly\npods: 5",
         "mine.yaml:1: segments is 6, but a Slim Fly of q = 5 has q racks of 2q switches; write 10"),
        ("dimensions: [4, 3]",
         "mine.yaml:1: dimensions means nothing to hpn; leave it out, or write architecture: torus or full-mesh"),
        ("preset: tiny-torus\nglobal_links: 2", "global_links means nothing to torus; leave it out, or write"),
        ("preset: tiny-torus\nswitch_capacity: 1600G", "lower uplink_rate"),
        ("preset: tiny-torus\nhosts: 200", "lower hosts + spare_hosts from 200 to 124, or uplinks"),
    ],
)  # fmt: skip
def test_what_makes_no_direct_network_is_refused_with_its_line_and_the_number_to_write(text: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        build(topology_in(parse(text, "mine.yaml"), "mine"))
    assert problem in str(error.value)


def test_a_link_between_tors_of_a_file_is_a_port_up_at_both_ends() -> None:
    names = ["t1", "t2", "t3"]
    nodes = [f"    {name}: {{role: tor}}\n    h{name}: {{role: host}}" for name in names]
    links = [f"    - {{ends: [h{name}:eth0, {name}:p0]}}" for name in names]
    links += ["    - {ends: [t1:p1, t2:p1]}", "    - {ends: [t2:p2, t3:p1]}"]
    head = ["architecture: wired", "bgp: {asn: per-switch}", "wiring:", "  nodes:", *nodes, "  links:", *links]
    fabric = build(topology_in(parse("\n".join(head), "mine.yaml"), "mine"))
    [budget] = inventory(fabric).budgets
    assert (budget.down_ports, budget.up_ports) == (1, 2)
    assert diameter(fabric) == 2
