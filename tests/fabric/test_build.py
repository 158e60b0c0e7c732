"""Fabrics: HPN's own inventory, unique names and numbers, wiring rules, refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Interface, IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.draft import lacp_key
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.model import Fabric, LinkKind, Nic, Node, Role
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.rules import contradictions
from hpn.testbed.fabric.spec import FabricSpec


def test_a_pod_has_the_papers_inventory() -> None:
    found = inventory(build(PRESETS["pod"].spec))
    assert (found.gpus, found.tors, found.aggs, found.cores) == (15_360, 240, 120, 0)
    assert found.link_count(LinkKind.ACCESS) == 30_720
    assert found.link_count(LinkKind.FABRIC) == 14_400
    tor, agg = found.budgets
    assert (tor.down_ports, tor.spare_ports, tor.up_ports) == (128, 8, 60)
    assert tor.used_bps == tor.capacity_bps
    assert tor.oversubscription == pytest.approx(1.0667, abs=1e-4)
    assert agg.down_ports == 120


def test_aggs_of_pods_under_a_core_are_oversubscribed_fifteen_to_one() -> None:
    agg = inventory(build(PRESETS["pods"].spec)).budgets[1]
    assert agg.oversubscription == pytest.approx(15.0)
    assert agg.used_bps == agg.capacity_bps


def test_sixty_four_gpus_match_the_public_generator() -> None:
    found = inventory(build(PRESETS["paper-64"].spec))
    assert (found.gpus, found.tors, found.aggs) == (64, 16, 16)
    assert (found.link_count(LinkKind.ACCESS), found.link_count(LinkKind.FABRIC)) == (128, 128)


def test_the_benchmark_fabric_has_164_nodes_and_384_links() -> None:
    fabric = build(PRESETS["medium"].spec)
    assert (len(fabric.nodes), len(fabric.links)) == (164, 384)


_any_numbers = st.builds(
    FabricSpec,
    architecture=st.sampled_from(sorted(ARCHITECTURES)),
    pods=st.integers(1, 2),
    segments=st.integers(1, 3),
    hosts=st.integers(1, 4),
    spare_hosts=st.integers(0, 1),
    rails=st.integers(1, 3),
    aggs=st.integers(0, 4),
    uplinks=st.integers(1, 2),
    cores=st.integers(0, 2),
    core_groups=st.integers(1, 2),
    seed=st.integers(0, 5),
)
_more_ports = st.builds(
    FabricSpec,
    architecture=st.just("hpn"),
    segments=st.integers(1, 3),
    hosts=st.integers(1, 3),
    rails=st.integers(1, 2),
    planes=st.integers(1, 8),
    nic_ports=st.none() | st.integers(1, 8),
    cores=st.integers(0, 2),
)
_same_rails = st.integers(1, 3).flatmap(
    lambda aggs: st.builds(
        FabricSpec,
        architecture=st.just("same-rail"),
        pods=st.integers(1, 2),
        segments=st.integers(1, 2),
        hosts=st.integers(1, 2),
        rails=st.integers(1, 3),
        nic_ports=st.none() | st.integers(1, 4),
        aggs=st.just(aggs),
        cores=st.sampled_from((aggs, 2 * aggs)),
        core_groups=st.just(aggs),
    )
)
_SMALL = [
    preset.spec for preset in PRESETS.values() if preset.spec.pods * preset.spec.segments * preset.spec.hosts <= 24
]
_drawn = st.one_of(_any_numbers, _more_ports, _same_rails, st.sampled_from(_SMALL))
possible_specs = _drawn.filter(lambda spec: not contradictions(spec))
"""Presets as well: of an architecture that takes few numbers hardly any drawn ones are possible."""


@settings(max_examples=60, deadline=None)
@given(possible_specs)
def test_every_name_number_and_address_is_unique(spec: FabricSpec) -> None:
    fabric = build(spec)
    _all_differ([n.name for n in fabric.nodes])
    _all_differ([link.name for link in fabric.links])
    ports = [port for link in fabric.links for port in (link.lower, link.upper)]
    _all_differ([port.label for port in ports])
    _all_differ([p.ifindex for p in ports] + [i for n in fabric.nics for i in (n.lag_ifindex, n.inner_ifindex)])
    _all_differ([nic.ip for nic in fabric.nics])
    _all_differ([nic.mac for nic in fabric.nics])
    _all_differ([p.address for p in ports if p.address is not None and p.address.endswith("/31")])
    _all_differ([n.router_id for n in fabric.switches])
    assert all(len(port.name) <= 15 for port in ports)


@settings(max_examples=60, deadline=None)
@given(possible_specs)
def test_wiring_keeps_planes_apart_and_addresses_inside_their_subnets(spec: FabricSpec) -> None:
    fabric = build(spec)
    for link in fabric.links:
        if link.is_routed:
            assert fabric.node(link.lower.node).plane == fabric.node(link.upper.node).plane == link.plane
    for nic in fabric.nics:
        network = IPv4Network(nic.subnet)
        assert IPv4Interface(f"{nic.ip}/{nic.prefix_len}").network == network
        assert IPv4Interface(nic.gateway).ip in network
        assert network.subnet_of(IPv4Network(nic.rail_network))
        for link in nic.links:
            assert link.upper.mac == nic.gateway_mac
            assert link.upper.address == f"{nic.gateway}/32"
            assert link.lower.mac == nic.mac


@settings(max_examples=60, deadline=None)
@given(possible_specs)
def test_every_nic_hangs_on_the_tors_of_its_segment_and_rail_by_ports_that_share_its_rate(spec: FabricSpec) -> None:
    fabric = build(spec)
    for nic in fabric.nics:
        _hangs_right(fabric, nic)
    for tor in (node for node in fabric.switches if node.role is Role.TOR):
        numbers = [link.upper.port_id for link in fabric.links_of(tor.name) if link.kind is LinkKind.ACCESS]
        _all_differ(numbers)
        assert all((number - 1) // spec.lacp.port_id_offset == tor.index + 1 for number in numbers)
    keys = [{link.upper.key for link in nic.links} for nic in fabric.nics]
    assert all(len(of_nic) == 1 for of_nic in keys)
    _all_differ([key for (key,) in keys])


def _one_tor_for_all_rails(spec: FabricSpec) -> bool:
    return spec.architecture == "dcn-plus" or ARCHITECTURES[spec.architecture].direct


def _hangs_right(fabric: Fabric, nic: Nic) -> None:
    spec, host, tors = fabric.spec, fabric.node(nic.host), [fabric.node(link.upper.node) for link in nic.links]
    assert [(tor.role, tor.pod, tor.segment, tor.index) for tor in tors] == [
        (Role.TOR, host.pod, host.segment, port) for port in range(len(tors))
    ]
    assert {tor.rail for tor in tors} == {None if _one_tor_for_all_rails(spec) else nic.rail}
    assert sum(link.rate_bps for link in nic.links) == max(2, len(tors)) * spec.nic_port_rate // spec.scale
    assert len({tor.plane for tor in tors}) == fabric.planes
    assert {tor.lacp_system for tor in tors} == {"00:00:5e:00:01:01"}


def test_at_the_papers_scale_every_nic_has_an_lacp_key_of_its_own_and_beyond_it_no_key_leaves_its_16_bits() -> None:
    pod = build(PRESETS["pod"].spec)
    assert len({nic.links[0].upper.key for nic in pod.nics}) == len(pod.nics) == 16_320
    assert [lacp_key(nic) for nic in (0, 65_534, 65_535)] == [1, 65_535, 1]


def test_aggs_of_many_pods_have_no_asn_of_a_core() -> None:
    """A route from a Core with an Agg's own ASN in it would be refused there."""
    fabric = build(FabricSpec(architecture="dual-tor-clos", pods=80, segments=1, hosts=1, aggs=1, cores=1))
    asns = {
        role: {node.asn for node in fabric.switches if node.role is role} for role in (Role.TOR, Role.AGG, Role.CORE)
    }
    assert len(asns[Role.AGG]) == 80
    assert not asns[Role.AGG] & (asns[Role.TOR] | asns[Role.CORE])


@settings(max_examples=60, deadline=None)
@given(possible_specs)
def test_switches_share_an_asn_when_they_share_tier_and_plane_and_aggs_reach_each_other_below_cores(
    spec: FabricSpec,
) -> None:
    fabric = build(spec)
    if spec.bgp.valleys:
        _all_differ([node.asn for node in fabric.switches])
        return
    groups: dict[tuple[object, ...], set[int | None]] = {}
    for node in fabric.switches:
        where = (node.pod, _nearest(fabric, node) if spec.has_cores or spec.cores else None)
        groups.setdefault((node.role, node.plane, where if node.role is Role.AGG else None), set()).add(node.asn)
    assert all(len(asns) == 1 for asns in groups.values())
    _all_differ([asn for (asn,) in groups.values()])


def _nearest(fabric: Fabric, agg: Node) -> str:
    """The first by name of all switches that an Agg reaches without Cores."""
    seen, edge = {agg.name}, [agg.name]
    while edge:
        links = [link for name in edge for link in fabric.links_of(name) if link.kind is LinkKind.FABRIC]
        ends = dict.fromkeys(end.node for link in links for end in (link.lower, link.upper))
        edge = [name for name in ends if name not in seen]
        seen.update(edge)
    return min(seen)


@settings(max_examples=20, deadline=None)
@given(possible_specs)
def test_the_same_specification_gives_the_same_fabric(spec: FabricSpec) -> None:
    assert build(spec) == build(spec)


def test_hpn_gives_each_nic_two_tors_in_two_planes_with_one_system_id_and_two_port_ids() -> None:
    fabric = build(FabricSpec(architecture="hpn", hosts=3, rails=2))
    for nic in fabric.nics:
        first, second = nic.links
        assert (first.plane, second.plane) == (0, 1)
        tors = [fabric.node(link.upper.node) for link in nic.links]
        assert tors[0].lacp_system == tors[1].lacp_system == "00:00:5e:00:01:01"
        assert second.upper.port_id - first.upper.port_id == 300
        assert first.upper.port_id > 256


def test_single_tor_keeps_the_nics_whole_rate_on_its_one_port() -> None:
    both = {name: build(FabricSpec(architecture=name)) for name in ("hpn", "single-tor")}
    assert _nic_rate(both["hpn"]) == _nic_rate(both["single-tor"])
    assert all(len(nic.links) == 1 for nic in both["single-tor"].nics)


def test_dual_tor_clos_links_both_tors_of_a_set_to_the_same_aggs() -> None:
    fabric = build(FabricSpec(architecture="dual-tor-clos", aggs=3))
    assert fabric.planes == 1
    uplinks = Counter(link.lower.node for link in fabric.links if link.kind is LinkKind.FABRIC)
    assert set(uplinks.values()) == {3}
    assert len([n for n in fabric.nodes if n.role is Role.AGG]) == 3


def test_ecmp_seeds_differ_between_switches_and_follow_the_seed() -> None:
    seeds = [n.ecmp_seed for n in build(FabricSpec(seed=1)).switches]
    _all_differ(seeds)
    assert seeds != [n.ecmp_seed for n in build(FabricSpec(seed=2)).switches]


def test_one_ecmp_seed_everywhere_is_a_wish_of_the_topology_file() -> None:
    (seed,) = {n.ecmp_seed for n in build(FabricSpec(seed=1, ecmp_seeds="one")).switches}
    assert seed != 0, "zero would mean the kernel's own random seed, another one in each switch"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hosts": 137, "rails": 1, "aggs": 60}, "lower hosts + spare_hosts from 137 to 136"),
        ({"segments": 17, "rails": 8, "aggs": 8}, "lower segments from 17 to 16"),
        ({"architecture": "hpm"}, "architecture 'hpm' is unknown; write hpn"),
        ({"scale": 10**6}, "lower scale to 200000"),
        ({"hosts": 4096, "rails": 64, "segments": 256, "pods": 64, "cores": 1}, "access links is more than"),
        ({"lacp": {"tor_system_ids": {"p0.s9.t0.0": "00:00:00:00:00:01"}}}, "no ToR 'p0.s9.t0.0'"),
        ({"pods": 4, "segments": 1, "hosts": 1, "aggs": 60, "cores": 8}, "or raise core_groups from 1"),
        ({"architecture": "dcn-plus", "hosts": 17, "rails": 8, "aggs": 8, "uplinks": 8}, "spare_hosts from 17 to 16"),
        (
            {"architecture": "stacked-dual-tor", "hosts": 136, "rails": 1, "aggs": 60},
            r"136 down, 0 spare, 60 up, 1 peer\) but a switch has 51.2T; lower hosts + spare_hosts from 136 to 134",
        ),
        (
            {"architecture": "stacked-dual-tor", "stack": {"tor_versions": {"p0.s0.t9.0": "2"}}},
            "stack.tor_versions: no ToR 'p0.s0.t9.0'",
        ),
        ({"planes": 4, "nic_ports": 6}, "nic_ports is 6, which 4 planes cannot share; write 8"),
        ({"planes": 3, "nic_ports": 2}, "nic_ports is 2, which 3 planes cannot share; write 3"),
        ({"architecture": "dual-tor-clos", "planes": 4}, "planes means nothing to dual-tor-clos: all its ToRs are of"),
        ({"architecture": "single-tor", "nic_ports": 2}, "nic_ports means nothing to single-tor: a NIC has one port"),
        ({"architecture": "rail-only", "pods": 2}, "pods means nothing to rail-only: a rail is one network"),
    ],
)
def test_impossible_fabrics_are_refused_with_the_number_to_change(change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words.replace("+", r"\+")):
        build(FabricSpec.model_validate(change))


def _all_differ(values: Sequence[object]) -> None:
    assert len(set(values)) == len(values)


def _nic_rate(fabric: Fabric) -> int:
    return sum(link.rate_bps for link in fabric.nics[0].links)


def test_both_ends_of_a_link_are_told_apart_and_only_a_lag_member_has_no_address() -> None:
    fabric = build(PRESETS["tiny-stacked"].spec)
    for link in fabric.links:
        assert (link.far_end(link.lower.node), link.far_end(link.upper.node)) == (link.upper, link.lower)
        if link.kind is LinkKind.ACCESS:
            with pytest.raises(ValueError, match=f"{link.lower.label} has no address"):
                assert link.lower.ip
            assert link.upper.ip == fabric.nic_of_link(link.name).gateway
        else:
            assert str(IPv4Interface(link.lower.address or "").ip) == link.lower.ip


def test_only_a_tor_has_an_lacp_system_id() -> None:
    fabric = build(PRESETS["tiny"].spec)
    for node in fabric.nodes:
        if node.role is Role.TOR:
            assert node.actor_system == fabric.spec.lacp.system_id
        else:
            with pytest.raises(ValueError, match=f"{node.name} is no ToR"):
                assert node.actor_system


@pytest.mark.parametrize(
    ("spec", "meet"),
    [
        (FabricSpec(segments=1, rails=2, aggs=0), False),
        (FabricSpec(segments=1, rails=1, aggs=0), True),
        (FabricSpec(segments=1, rails=2, aggs=1), True),
        (FabricSpec(architecture="dcn-plus", segments=1, rails=2, aggs=0), True),
        (FabricSpec(architecture="rail-only", rails=2), False),
    ],
)
def test_rails_meet_where_a_switch_leads_from_one_to_another(spec: FabricSpec, meet: bool) -> None:
    assert build(spec).rails_meet is meet
