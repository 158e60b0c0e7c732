"""uSID plans of fabrics drawn at random: carriers lead along their paths, and no path is missing."""

from __future__ import annotations

import random
from itertools import islice, pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.testbed.errors import InputError
from hpn.testbed.fabric import srv6_spec
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.routing.srv6.numbers import GIB, LIB, MOST_USIDS, numbered
from hpn.testbed.routing.srv6.packet import Datagram, encapsulated, internet_checksum
from hpn.testbed.routing.srv6.plan import UsidPlan, paths
from hpn.testbed.routing.srv6.summary import srv6_notes, summary
from hpn.testbed.routing.srv6.switch_paths import ROUTINGS
from tests.fabric.direct_sizes import direct_sizes
from tests.fabric.own_network import write
from tests.routing.usid_walk import walked
from tests.strangers import draw as strangers

_CLOS = {"hpn": 4, "dual-tor-clos": 2, "single-tor": 1, "dcn-plus": 2, "fat-tree": 1, "same-rail": 1, "rail-only": 1}
_SHAPES: dict[str, dict[str, object]] = {
    "eight-planes": {"architecture": "hpn", "planes": 8, "segments": 2, "hosts": 2, "aggs": 2},
    "one-plane": {"architecture": "hpn", "planes": 1, "segments": 2, "hosts": 2, "aggs": 2},
    "parallel": {"architecture": "dual-tor-clos", "segments": 2, "hosts": 2, "aggs": 2, "uplinks": 3},
    "three-tiers": {"architecture": "hpn", "pods": 2, "segments": 2, "hosts": 1, "aggs": 2, "cores": 2},
    "stacked": {"architecture": "stacked-dual-tor", "segments": 2, "hosts": 2, "aggs": 2},
}


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Fabrics of all architectures that can have SRv6."""
    kind = draw(st.sampled_from(["clos", "dragonfly", "slim-fly", "torus", "full-mesh"]))
    if kind == "clos":
        spec = strangers.spec_of(strangers.fabric(draw(st.integers(0, 10_000)), _CLOS))
        return build(spec.model_copy(update={"srv6": _srv6()}))
    return build(FabricSpec.model_validate({**draw(direct_sizes(kind)), "srv6": {}}))


def _srv6() -> Any:
    return FabricSpec.model_validate({"srv6": {}}).srv6


def _shape(name: str) -> Fabric:
    return build(FabricSpec.model_validate({**_SHAPES[name], "srv6": {}}))


def _pairs(fabric: Fabric, most: int) -> list[tuple[str, str]]:
    names = [nic.name for nic in fabric.nics]
    found = [(one, other) for one in names for other in names if one != other]
    return random.Random(0).sample(found, min(most, len(found)))


def _holds(fabric: Fabric, most: int = 12) -> None:
    plan = UsidPlan(fabric)
    for src, dst in _pairs(fabric, most):
        found = plan.paths(src, dst)
        assert sorted((path.port, path.links) for path in found) == sorted(_all_shortest(fabric, src, dst))
        assert len({path.carrier for path in found if path.port == 0}) == sum(path.port == 0 for path in found)
        for path in found:
            assert walked(plan, src, path.port, path.carrier) == (list(path.links), dst)
            assert len(path.usids) <= plan.longest() <= MOST_USIDS
    for node in fabric.nodes:
        entries = [(entry.table, entry.prefix) for entry in plan.table(node.name)]
        assert len(entries) == len(set(entries))


def _all_shortest(fabric: Fabric, src: str, dst: str) -> list[tuple[int, tuple[str, ...]]]:
    """networkx's: of each port, on a graph in which no host passes anything on."""
    nx = pytest.importorskip("networkx", reason="needs networkx: make extras")
    graph = nx.MultiDiGraph()
    for link in fabric.links:
        if link.kind is LinkKind.ACCESS and fabric.nic_of_link(link.name).name == dst:
            graph.add_edge(link.upper.node, dst, link.name)
        elif link.kind not in (LinkKind.ACCESS, LinkKind.PEER):
            graph.add_edge(link.lower.node, link.upper.node, link.name)
            graph.add_edge(link.upper.node, link.lower.node, link.name)
    found = []
    for port, first in enumerate(fabric.nic(src).links):
        tor = first.upper.node
        if tor in graph and nx.has_path(graph, tor, dst):
            nodes = {tuple(each) for each in nx.all_shortest_paths(graph, tor, dst)}
            ways = [way for each in nodes for way in _ways(graph, each)]
            found += [(port, (first.name, *way)) for way in ways]
    return found


def _ways(graph: Any, nodes: tuple[str, ...]) -> list[tuple[str, ...]]:
    ways: list[tuple[str, ...]] = [()]
    for here, there in pairwise(nodes):
        ways = [(*way, link) for way in ways for link in graph[here][there]]
    return ways


@settings(max_examples=25)
@given(fabrics())
def test_each_carrier_leads_along_its_path_and_no_shortest_path_is_missing(fabric: Fabric) -> None:
    _holds(fabric, 6)


@pytest.mark.parametrize("name", _SHAPES)
def test_so_it_is_with_planes_tiers_and_parallel_links(name: str) -> None:
    _holds(_shape(name))


@settings(max_examples=25)
@given(st.sampled_from(["dragonfly", "slim-fly", "torus", "full-mesh"]).flatmap(direct_sizes))
def test_valiants_detours_come_after_the_shortest_paths_and_lead_back_by_the_same_links(size: dict[str, Any]) -> None:
    minimal = UsidPlan(build(FabricSpec.model_validate({**size, "srv6": {}})))
    plan = UsidPlan(build(FabricSpec.model_validate({**size, "srv6": {"routing": "valiant"}})))
    fabric = plan.fabric
    for src, dst in _pairs(fabric, 4):
        short, found = minimal.paths(src, dst), plan.paths(src, dst)
        assert set(short) <= set(found)
        assert len({(path.port, path.links) for path in found}) == len(found)
        assert {path.links[::-1] for path in plan.paths(dst, src)} == {path.links for path in found}
        for path in found:
            assert walked(plan, src, path.port, path.carrier) == (list(path.links), dst)
            switches = [fabric.link(path.links[0]).upper.node]
            for link in map(fabric.link, path.links[1:-1]):
                switches.append(link.far_end(switches[-1]).node)
            assert len(set(switches)) == len(switches), "no switch twice"
            assert len(path.usids) <= MOST_USIDS


@settings(max_examples=25)
@given(
    st.sampled_from(["dragonfly", "slim-fly", "torus", "full-mesh"]).flatmap(direct_sizes),
    st.sampled_from([1, 3, 8, 20]),
)
def test_the_k_shortest_paths_are_as_long_as_those_of_networkx(size: dict[str, Any], most: int) -> None:
    nx = pytest.importorskip("networkx", reason="needs networkx: make extras")
    plan = UsidPlan(build(FabricSpec.model_validate({**size, "srv6": {"routing": "k-shortest", "paths": most}})))
    fabric = plan.fabric
    graph = nx.Graph((link.lower.node, link.upper.node) for link in fabric.links if link.is_routed)
    graph.add_nodes_from(node.name for node in fabric.switches)
    for src, dst in _pairs(fabric, 4):
        found = plan.paths(src, dst)
        assert len({path.links for path in found}) == len(found) <= most
        assert {path.links[::-1] for path in plan.paths(dst, src)} == {path.links for path in found}
        for path in found:
            assert walked(plan, src, path.port, path.carrier) == (list(path.links), dst)
        here, there = (fabric.nic(name).links[0].upper.node for name in (src, dst))
        simple = nx.shortest_simple_paths(graph, here, there) if here != there else [[here]]
        lengths = [len(nodes) + 1 for nodes in takewhile(lambda nodes: len(nodes) <= MOST_USIDS, islice(simple, most))]
        assert sorted(len(path.links) for path in found) == lengths


def test_a_few_of_many_shortest_paths_begin_with_different_links() -> None:
    spec = {"architecture": "full-mesh", "segments": 8, "dimensions": [8], "hosts": 1}
    more = {"bgp": {"asn": "per-switch"}, "srv6": {"routing": "k-shortest", "paths": 13}}
    found = UsidPlan(build(FabricSpec.model_validate({**spec, **more}))).paths("p0.s0.h0.r0", "p0.s1.h0.r0")
    assert [len(path.links) for path in found] == [3, *[4] * 6, *[5] * 6]
    assert len({path.links[1] for path in found[-6:]}) == 6


def test_eight_paths_are_offered_where_no_number_is_given() -> None:
    spec = {"architecture": "full-mesh", "segments": 16, "dimensions": [4, 4], "hosts": 1}
    more = {"bgp": {"asn": "per-switch"}, "srv6": {"routing": "k-shortest"}}
    found = UsidPlan(build(FabricSpec.model_validate({**spec, **more}))).paths("p0.s0.h0.r0", "p0.s1.h0.r0")
    assert [len(path.links) for path in found] == [3, 4, 4, *[5] * 5]


def test_each_routing_that_a_file_may_name_has_its_paths() -> None:
    assert srv6_spec.ROUTINGS.keys() == ROUTINGS.keys()


def test_a_full_mesh_has_a_detour_by_each_other_switch() -> None:
    spec = {"architecture": "full-mesh", "segments": 6, "dimensions": [6], "hosts": 1, "bgp": {"asn": "per-switch"}}
    found = UsidPlan(build(FabricSpec.model_validate({**spec, "srv6": {"routing": "valiant"}}))).paths(
        "p0.s0.h0.r0", "p0.s3.h0.r0"
    )
    assert [len(path.links) for path in found] == [3, 4, 4, 4, 4]


def test_a_plan_is_the_same_every_time() -> None:
    one, other = UsidPlan(_shape("parallel")), UsidPlan(_shape("parallel"))
    for node in one.fabric.nodes:
        assert one.table(node.name) == other.table(node.name)
    for pair in _pairs(one.fabric, 5):
        assert one.paths(*pair) == other.paths(*pair) == paths(one.fabric, *pair)


def test_usids_of_nodes_are_global_and_those_of_parallel_links_local() -> None:
    found = numbered(_shape("parallel"))
    glob = [*found.node.values(), *found.nic.values()]
    assert sorted(glob) == list(GIB[: len(glob)])
    of_a_tor = [usid for port, usid in found.adjacency.items() if port.startswith("p0.s0.t0.0:")]
    assert of_a_tor == list(LIB[:6])  # three uplinks to each of two Aggs
    assert not numbered(_shape("eight-planes")).adjacency


def test_a_carrier_holds_six_usids() -> None:
    found = numbered(_shape("one-plane"))
    assert found.carrier((1, 2, 3, 4, 5, 0xDFFF)) == "fc00:0:1:2:3:4:5:dfff"
    assert found.prefix(0xE000) == "fc00:0:e000::/48"
    with pytest.raises(ValueError, match="7 uSIDs, and a carrier holds 6"):
        found.carrier((1,) * 7)


def test_a_longer_path_is_refused_with_its_number() -> None:
    spec = {"architecture": "torus", "segments": 14, "dimensions": [14], "hosts": 1, "bgp": {"asn": "per-switch"}}
    plan = UsidPlan(build(FabricSpec.model_validate(spec)))
    with pytest.raises(InputError, match="needs 8 uSIDs, and a carrier holds 6"):
        plan.paths("p0.s0.h0.r0", "p0.s7.h0.r0")
    assert plan.paths("p0.s0.h0.r0", "p0.s5.h0.r0")[0].links[-1] == "p0.s5.h0.r0.0"


def test_one_nic_has_no_path_to_itself_and_unknown_ones_are_named() -> None:
    plan = UsidPlan(_shape("one-plane"))
    with pytest.raises(InputError, match="is at both ends; name two NICs"):
        plan.paths("p0.s0.h0.r0", "p0.s0.h0.r0")
    with pytest.raises(InputError, match="no NIC 'p9'"):
        plan.paths("p9", "p0.s0.h0.r0")


def test_more_parts_than_usids_are_refused() -> None:
    spec = {"architecture": "single-tor", "segments": 2, "hosts": 1, "aggs": 1}
    fabric = build(FabricSpec.model_validate(spec))
    many = Fabric(fabric.spec, fabric.nodes, fabric.links, fabric.nics * 30_000, fabric.planes)
    with pytest.raises(InputError, match="3 switches and 60,000 NICs are more than 57,343 uSIDs; lower pods"):
        numbered(many)


_BAD = {
    "block: no prefix": ("preset: tiny\nsrv6: {block: mine}\n", r"2: srv6.block: 'mine' is no IPv6 prefix of 32 bits"),
    "block: 48 bits": ("preset: tiny\nsrv6:\n  block: fc00::/48\n", r"3: srv6.block: 'fc00::/48' is no IPv6 prefix"),
    "block: taken": ("preset: tiny\nsrv6: {block: 'fd00::/32'}\n", r"2: .*'fd00::/32' is within fd00::/14"),
    "paths of another routing": (
        "preset: tiny\nsrv6:\n  paths: 4\n",
        r"3: srv6.paths has no meaning with routing minimal; write routing: k-shortest",
    ),
    "long": (
        "architecture: torus\nsegments: 12\ndimensions: [12]\nhosts: 1\nbgp: {asn: per-switch}\nsrv6: {}\n",
        r"6: srv6: the longest path needs 7 uSIDs, and an IPv6 address carries 6; take a network",
    ),
}


@pytest.mark.parametrize("name", _BAD)
def test_what_srv6_cannot_do_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    text, message = _BAD[name]
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(InputError, match=rf"mine\.yaml:{message}"):
        load_topology(str(tmp_path / "mine.yaml"))


def test_a_configuration_of_a_switchs_own_is_refused_with_srv6(tmp_path: Path) -> None:
    file = write(tmp_path)
    file.write_text(f"srv6: {{}}\n{file.read_text()}")
    with pytest.raises(InputError, match=r":1: srv6 needs tables that hpn writes, but leaf1 runs a config"):
        load_topology(str(file))


def test_the_plan_tells_its_sizes() -> None:
    found = summary(UsidPlan(_shape("parallel")))
    assert (found.switches, found.nics, found.adjacencies, found.most_usids) == (6, 4, 48, 3)
    plan = UsidPlan(_shape("parallel"))
    assert found.most_routes == max(len(plan.table(node.name)) for node in plan.fabric.switches)
    (note,) = srv6_notes(plan.fabric)
    assert note.startswith("SRv6: 10 uSIDs (6 of switches, 4 of NICs) and 48 uAs, at ends of parallel links; at most")
    assert not list(srv6_notes(build(FabricSpec.model_validate(_SHAPES["parallel"]))))


def test_a_packet_has_headers_that_add_up() -> None:
    inner = Datagram("fd00::1", "fd00::2", 49152, 4791, b"odd").packet()
    outer = encapsulated(inner, "fd00::1", "fc00:0:1:2::", 0xABCDE)
    assert outer[:4] == bytes.fromhex("600abcde")
    assert outer[6] == 41
    assert outer[40:] == inner
    pseudo = inner[8:40] + (11).to_bytes(4, "big") + bytes([0, 0, 0, 17])
    assert internet_checksum(pseudo + inner[40:]) == 0
