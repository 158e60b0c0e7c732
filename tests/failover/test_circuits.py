"""The schedule of an optical core: which links are there at each moment."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults import FAULTS, OpticalCircuits
from hpn.failover.faults.base import MS
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.routing.distances import Adjacency
from tests.fabric.direct_sizes import direct_sizes


def _mesh(switches: int) -> Fabric:
    keys = {"architecture": "full-mesh", "segments": switches, "dimensions": [switches], "hosts": 1}
    return build(FabricSpec.model_validate({**keys, "bgp": {"asn": "per-switch"}}))


def _there(fabric: Fabric, fault: OpticalCircuits) -> list[tuple[int, Counter[str]]]:
    """Links of each switch after each moment, while moves go on."""
    up = {link.name for link in fault.links_hit(fabric)}
    found = []
    edges = fault.edges(0, None)
    for at_ns in sorted({edge.at_ns for edge in edges})[:-1]:
        for edge in edges:
            if edge.at_ns == at_ns and edge.part is not None:
                name = edge.part.target
                assert (name in up) == (edge.kind is EdgeKind.FAILURE), "a link goes once, and comes once"
                up ^= {name}
        ends = [end.node for name in up for end in (fabric.link(name).lower, fabric.link(name).upper)]
        found.append((at_ns, Counter(ends)))
    return found


def test_each_switch_of_a_full_mesh_keeps_its_circuits_and_loses_one_while_a_switch_turns() -> None:
    fabric = _mesh(8)
    fault = OpticalCircuits("plane0", 3, 500 * MS, 9).on(fabric)
    assert [len(matching) for matching in fault.matchings] == [4] * 7, "a round robin of eight"
    for at_ns, links in _there(fabric, fault):
        turns = at_ns % (500 * MS) == 0 and at_ns > 0
        assert {*links.values()} == {2 if turns else 3}
        assert len(links) == 8
    last = fault.edges(0, None)[-1]
    assert (last.at_ns, last.kind) == (5000 * MS, EdgeKind.REPAIR)


def test_two_circuits_join_all_switches_of_a_full_mesh_of_eight() -> None:
    fabric = _mesh(8)
    matchings = OpticalCircuits("plane0", 3, 500 * MS, 9).on(fabric).matchings
    for one, other in combinations(matchings, 2):
        gone = {link.name for link in fabric.links if link.is_routed} - {*one, *other}
        assert len(Adjacency(fabric, gone).joined("p0.s0.t0.0")) == 8


def test_every_pair_of_switches_meets_within_a_round() -> None:
    fabric = _mesh(6)
    fault = OpticalCircuits("plane0", 2, 500 * MS, 20).on(fabric)
    come = {edge.part.target for edge in fault.edges(0, None)[:-1] if edge.part and edge.kind is EdgeKind.REPAIR}
    assert come == {link.name for link in fault.links_hit(fabric)}


@settings(max_examples=30)
@given(st.sampled_from(["dragonfly", "slim-fly", "torus", "full-mesh"]).flatmap(direct_sizes), st.integers(1, 30))
def test_no_matching_of_any_direct_network_has_a_switch_twice_and_in_the_end_every_link_is_back(
    size: dict[str, object], count: int
) -> None:
    fabric = build(FabricSpec.model_validate(size))
    try:
        fault = OpticalCircuits("plane0", 1, 500 * MS, count).on(fabric)
    except InputError:
        return  # one switch, or two: there is nothing to turn
    for matching in fault.matchings:
        ends = [end.node for name in matching for end in (fabric.link(name).lower, fabric.link(name).upper)]
        assert len(set(ends)) == len(ends)
    moments = [edge.at_ns for edge in fault.edges(0, None)]
    assert all(one <= other for one, other in pairwise(moments))
    up = {link.name for link in fault.links_hit(fabric)}
    for edge in fault.edges(0, None):
        assert edge.part is not None
        up ^= {edge.part.target}
    assert up == {link.name for link in fault.links_hit(fabric)}


@pytest.mark.parametrize(
    ("circuits", "dark_ms", "says"),
    [(7, 20, "7 circuits are all that the 7 matchings of plane0 need"), (3, 500, "dark for a whole dwell")],
)
def test_a_schedule_that_cannot_be_is_refused(circuits: int, dark_ms: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        OpticalCircuits("plane0", circuits, 500 * MS, 3, dark_ms * MS).on(_mesh(8))


def test_only_direct_networks_have_links_that_move() -> None:
    assert "no two ToRs are joined" in FAULTS["optical-circuits"].misfit(load_fabric("tiny"))
    assert not FAULTS["optical-circuits"].misfit(load_fabric("tiny-torus"))
