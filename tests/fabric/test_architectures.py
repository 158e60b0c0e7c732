"""What tells the architectures apart: who meets whom, over what, and the inventories that are published."""

from __future__ import annotations

from collections import Counter

import pytest

from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.model import Fabric, LinkKind, Role
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.rules import contradictions
from hpn.testbed.fabric.spec import FabricSpec


def _preset(name: str) -> Fabric:
    return build(PRESETS[name].spec)


def _networks(fabric: Fabric) -> list[set[str]]:
    """Sets of switches that reach each other."""
    group = {node.name: {node.name} for node in fabric.switches}
    for link in fabric.links:
        if link.is_routed and group[link.lower.node] is not group[link.upper.node]:
            joined = group[link.lower.node] | group[link.upper.node]
            group.update(dict.fromkeys(joined, joined))
    return list({id(members): members for members in group.values()}.values())


@pytest.mark.parametrize(
    ("preset", "networks", "planes", "rails_meet"),
    [
        ("tiny", 2, 2, True),
        ("tiny-pods", 2, 2, True),
        ("tiny-stacked", 1, 1, True),
        ("tiny-dcn-plus", 1, 1, True),
        ("tiny-rail-only", 2, 1, False),
        ("tiny-fat-tree", 1, 1, True),
        ("tiny-same-rail", 1, 1, True),
        ("tiny-four-planes", 4, 4, True),
        ("tiny-spine-leaf", 1, 1, True),
        ("tiny-superpod", 1, 1, True),
        ("tiny-megascale", 1, 1, True),
        ("tiny-zones", 1, 1, True),
        ("tiny-torus", 1, 1, True),
        ("tiny-ub-mesh", 1, 1, True),
        ("tiny-dragonfly", 1, 1, True),
        ("tiny-slim-fly", 1, 1, True),
    ],
)
def test_planes_and_rails_are_apart_where_they_are_said_to_be(
    preset: str, networks: int, planes: int, rails_meet: bool
) -> None:
    fabric = _preset(preset)
    assert (len(_networks(fabric)), fabric.planes, fabric.rails_meet) == (networks, planes, rails_meet)


def test_every_architecture_has_a_preset_small_enough_for_a_lab_of_24_nodes() -> None:
    small = [build(preset.spec) for name, preset in PRESETS.items() if name.startswith("tiny")]
    sizes = {fabric.spec.name: len(fabric.nodes) for fabric in small}
    assert sizes.pop("tiny-fat-tree") == 36, "the least k with two ways up is 4"
    assert sizes.pop("tiny-slim-fly") == 36, "the least q is 3"
    assert max(sizes.values()) <= 24
    assert {fabric.spec.architecture for fabric in small} == set(ARCHITECTURES) - {
        "dual-tor-clos",
        "wired",
    }, "the first is tiny with another architecture, the last is any network of a user"


def test_a_fat_tree_of_four_pods_is_the_papers_figure() -> None:
    found = inventory(_preset("tiny-fat-tree"))
    assert (found.hosts, found.tors, found.aggs, found.cores) == (16, 8, 8, 4)
    assert {kind: found.link_count(kind) for kind in (LinkKind.ACCESS, LinkKind.FABRIC, LinkKind.CORE)} == {
        LinkKind.ACCESS: 16,
        LinkKind.FABRIC: 16,
        LinkKind.CORE: 16,
    }
    assert {(b.down_ports + b.up_ports, b.oversubscription) for b in found.budgets if b.role is not Role.CORE} == {
        (4, 1)
    }, "switches of four ports, one to one"


def test_a_core_of_a_fat_tree_has_one_link_to_each_pod_and_two_aggs_of_a_pod_no_core_in_common() -> None:
    fabric = _preset("tiny-fat-tree")
    below: dict[str, list[int]] = {}
    above: dict[str, set[str]] = {}
    for link in fabric.links:
        if link.kind is LinkKind.CORE:
            below.setdefault(link.upper.node, []).append(fabric.node(link.lower.node).pod)
            above.setdefault(link.lower.node, set()).add(link.upper.node)
    assert [sorted(pods) for pods in below.values()] == [[0, 1, 2, 3]] * 4
    assert all(above[f"p{pod}.a0.0"].isdisjoint(above[f"p{pod}.a0.1"]) for pod in range(4))
    assert {link.rate_bps for link in fabric.links} == {400_000_000}


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({"pods": 3}, ["pods"]),
        ({"cores": 3}, ["cores"]),
        ({"hosts": 3, "rails": 2, "uplinks": 2, "spare_hosts": 1}, ["hosts", "rails", "spare_hosts", "uplinks"]),
        ({"pods": 6}, ["aggs", "core_groups", "cores", "hosts", "segments"]),
        ({"nic_port_rate": "100G"}, ["core_rate", "uplink_rate"]),
    ],
)
def test_each_number_that_makes_no_fat_tree_is_named(change: dict[str, object], keys: list[str]) -> None:
    spec = FabricSpec.model_validate({**PRESETS["tiny-fat-tree"].spec.model_dump(), **change})
    found = {where[0] for where, _ in contradictions(spec)}
    assert sorted(found) == keys


def test_the_number_that_a_fat_tree_asks_for_makes_one() -> None:
    spec = FabricSpec(architecture="fat-tree", pods=6, segments=3, hosts=3, aggs=3, cores=9, core_groups=3)
    assert len(build(spec).hosts) == 6**3 // 4


def test_a_stack_is_the_two_tors_of_a_set_with_one_peer_link_and_the_primary_at_port_0() -> None:
    fabric = _preset("tiny-stacked")
    assert len(fabric.stacks) == 4
    for nic in fabric.nics:
        first, second = (link.upper.node for link in nic.links)
        stack = fabric.stack_of[first]
        assert (stack.primary, stack.secondary) == (first, second)
        assert (stack.other(first), stack.other(second)) == (second, first)
        peer = fabric.link(stack.peer_link)
        assert (peer.kind, peer.is_routed, peer.upper.node, peer.lower.node) == (LinkKind.PEER, False, first, second)
    assert sum(link.kind is LinkKind.PEER for link in fabric.links) == 4


def test_without_its_peer_links_a_stacked_fabric_is_wired_like_the_clos_it_sits_below() -> None:
    values = PRESETS["tiny-stacked"].spec.model_dump() | {"architecture": "dual-tor-clos"}
    stacked, clos = _preset("tiny-stacked"), build(FabricSpec.model_validate(values))
    assert tuple(link for link in stacked.links if link.kind is not LinkKind.PEER) == clos.links
    assert (stacked.nodes, stacked.nics, clos.stacks) == (clos.nodes, clos.nics, ())


def test_a_tor_upgraded_alone_leaves_its_stack_with_two_versions() -> None:
    versions = {"version": "7.1", "tor_versions": {"p0.s0.t0.1": "7.2"}}
    fabric = build(FabricSpec.model_validate({"architecture": "stacked-dual-tor", "stack": versions}))
    first, *others = fabric.stacks
    assert (first.primary_version, first.secondary_version) == ("7.1", "7.2")
    assert {(stack.primary_version, stack.secondary_version) for stack in others} == {("7.1", "7.1")}


def test_a_peer_link_costs_both_tors_a_port() -> None:
    tor = inventory(_preset("tiny-stacked")).budgets[0]
    assert (tor.down_ports, tor.up_ports, tor.peer_ports, tor.peer_bps) == (2, 2, 1, 400 * 10**9)
    assert tor.used_bps == tor.down_bps + tor.up_bps + tor.peer_bps


def test_a_dcn_plus_pod_fills_its_switches_one_to_one_up_to_the_core() -> None:
    found = inventory(_preset("dcn-plus"))
    assert (found.gpus, found.hosts, found.tors, found.aggs, found.cores) == (16_384, 2048, 256, 256, 128)
    assert found.link_count(LinkKind.CORE) == 16_384
    tor, agg, core = found.budgets
    assert (tor.down_ports, tor.up_ports) == (128, 64)
    assert (agg.down_ports, agg.up_ports, core.down_ports) == (64, 64, 128)
    assert tor.oversubscription == agg.oversubscription == 1
    assert all(budget.used_bps == budget.capacity_bps for budget in found.budgets)


def test_a_dcn_plus_pod_with_single_uplinks_matches_the_public_generator() -> None:
    spec = FabricSpec.model_validate({**PRESETS["dcn-plus-pod"].spec.model_dump(), "uplinks": 1})
    found = inventory(build(spec))
    assert (found.gpus, found.tors, found.aggs) == (512, 8, 8)
    assert (found.link_count(LinkKind.ACCESS), found.link_count(LinkKind.FABRIC)) == (1024, 64)


def test_all_nics_of_a_dcn_plus_host_hang_on_the_same_two_tors() -> None:
    fabric = _preset("tiny-dcn-plus")
    for host in fabric.hosts:
        assert len({tuple(link.upper.node for link in nic.links) for nic in fabric.nics_of(host.name)}) == 1


def test_parallel_uplinks_are_links_of_their_own() -> None:
    fabric = _preset("tiny-dcn-plus")
    pairs = Counter((link.lower.node, link.upper.node) for link in fabric.links if link.kind is LinkKind.FABRIC)
    assert set(pairs.values()) == {2}
    link = fabric.link("p0.s1.t0.0-p0.a0.1.1")
    assert (link.lower.label, link.upper.label) == ("p0.s1.t0.0:up1p1", "p0.a0.1:s1r0t0p1")


@pytest.mark.parametrize("architecture", ["hpn", "dcn-plus"])
def test_an_agg_reaches_the_cores_of_its_own_group_and_every_core_every_pod(architecture: str) -> None:
    spec = FabricSpec(architecture=architecture, pods=3, segments=1, aggs=4, cores=6, core_groups=2)
    fabric = build(spec)
    for core in (node for node in fabric.nodes if node.role is Role.CORE):
        aggs = [fabric.node(link.lower.node) for link in fabric.links_of(core.name)]
        assert {agg.plane for agg in aggs} == {core.plane}
        assert [(agg.pod, agg.index) for agg in aggs] == [
            (pod, index) for pod in range(3) for index in ((0, 1) if core.index < 3 else (2, 3))
        ]


def test_cores_in_groups_carry_more_hpn_pods_than_two_at_the_same_oversubscription() -> None:
    spec = FabricSpec(pods=4, segments=15, hosts=1, rails=8, aggs=60, cores=16, core_groups=2)
    _, agg, core = inventory(build(spec)).budgets
    assert agg.oversubscription == 15
    assert core.down_ports == 120


def test_an_agg_of_a_rail_only_fabric_serves_one_rail() -> None:
    fabric = _preset("tiny-rail-only")
    aggs = [node for node in fabric.nodes if node.role is Role.AGG]
    assert [agg.name for agg in aggs] == ["p0.r0.a0", "p0.r0.a1", "p0.r1.a0", "p0.r1.a1"]
    for agg in aggs:
        tors = [fabric.node(link.lower.node) for link in fabric.links_of(agg.name)]
        assert [(tor.segment, tor.rail) for tor in tors] == [(0, agg.rail), (1, agg.rail)]
