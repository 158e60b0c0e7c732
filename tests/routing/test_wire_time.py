"""The least time on wires: counted by hand, and by networkx on fabrics drawn at random."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import Fabric, LinkKind, Nic
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.routing.wire_time import WireTimes
from tests.strangers import draw as strangers

_BYTES = 4158


def _fabric(**changes: object) -> Fabric:
    return build(FabricSpec.model_validate({"segments": 2, "hosts": 2, "rails": 1, "aggs": 2, **changes}))


def _nics(fabric: Fabric, *names: str) -> list[Nic]:
    return [fabric.nic(name) for name in names]


def test_through_one_tor_it_is_two_packets_and_through_an_agg_four() -> None:
    fabric = _fabric(scale=1000)
    first, beside, far = _nics(fabric, "p0.s0.h0.r0", "p0.s0.h1.r0", "p0.s1.h0.r0")
    packet_ns = _BYTES * 8 * 10**9 // first.links[0].rate_bps
    uplink_ns = _BYTES * 8 * 10**9 // next(link.rate_bps for link in fabric.links if link.kind is LinkKind.FABRIC)
    times = WireTimes(fabric, _BYTES)
    assert times.least_ns(first, beside) == 2 * packet_ns
    assert times.least_ns(first, far) == 2 * packet_ns + 2 * uplink_ns
    assert times.least_ns(far, first) == times.least_ns(first, far)
    assert packet_ns != uplink_ns, "else the test says less"


def test_rails_that_no_switch_joins_have_no_time() -> None:
    fabric = load_fabric("tiny-rail-only")
    times = WireTimes(fabric, _BYTES)
    assert times.least_ns(*_nics(fabric, "p0.s0.h0.r0", "p0.s0.h1.r1")) == 0


@pytest.mark.parametrize("seed", range(16))
def test_on_drawn_fabrics_it_is_that_of_a_path_with_the_fewest_links(seed: int) -> None:
    nx = pytest.importorskip("networkx", reason="needs networkx: make extras")
    fabric = build(strangers.spec_of(strangers.fabric(f"wires/{seed}")))
    graph = nx.Graph()
    for link in fabric.links:
        if link.is_routed:
            ns = _BYTES * 8 * 10**9 // link.rate_bps
            near = graph.get_edge_data(link.lower.node, link.upper.node, {"ns": ns})
            graph.add_edge(link.lower.node, link.upper.node, ns=min(ns, near["ns"]))
    graph.add_nodes_from(node.name for node in fabric.switches)
    times, draw = WireTimes(fabric, _BYTES), random.Random(seed)
    for _ in range(8):
        src, dst = draw.sample(fabric.nics, 2)
        assert times.least_ns(src, dst) in _by_networkx(nx, graph, src, dst), f"{src.name} to {dst.name}"


def _by_networkx(nx: Any, graph: Any, src: Nic, dst: Nic) -> set[int]:
    """Times of the paths with the fewest links from each port to the nearest one of the other NIC; 0 if none."""
    found: set[int] = set()
    for out in src.links:
        ways: list[tuple[int, int]] = []
        for last in dst.links:
            try:
                paths = [*nx.all_shortest_paths(graph, out.upper.node, last.upper.node)]
            except nx.NetworkXNoPath:
                continue
            ends_ns = sum(_BYTES * 8 * 10**9 // link.rate_bps for link in (out, last))
            for path in paths:
                between = sum(graph[a][b]["ns"] for a, b in pairwise(path))
                ways.append((len(path), ends_ns + between))
        fewest = min((links for links, _ in ways), default=0)
        found |= {ns for links, ns in ways if links == fewest}
    return found or {0}
