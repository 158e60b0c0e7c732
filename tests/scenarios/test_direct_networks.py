"""Drills on direct networks: what faults may hit there, who is in their blast radius, where drills of others land."""

from __future__ import annotations

import pytest

from hpn.failover.faults import LinkDown, TargetKind
from hpn.scenarios.campaign.survivors import joined
from hpn.scenarios.drill.blast_radius import transit_flows
from hpn.scenarios.drill.catalogue import load
from hpn.scenarios.drill.coordinates import FabricParts, Moving
from hpn.scenarios.drill.path_choice import check_choice
from hpn.scenarios.drill.targets import accepted
from hpn.scenarios.drill.workload import flows_of
from hpn.testbed.fabric.load import load_fabric

TORUS = load_fabric("tiny-torus")
MESH = [link.name for link in TORUS.links if link.is_routed]
FLOWS = flows_of(load("link-down-torus").workload, TORUS)


def test_links_between_tors_are_targets_and_all_flows_between_racks_may_cross_one() -> None:
    assert accepted(TORUS, TargetKind.UPLINK) == tuple(MESH)
    assert transit_flows(TORUS, [LinkDown(MESH[0])], FLOWS) == tuple(flow.id for flow in FLOWS)
    assert transit_flows(TORUS, [LinkDown("p0.s0.h0.r0.0")], FLOWS) == ()
    check_choice(TORUS, FLOWS, "order")


def test_a_queue_pair_survives_while_a_path_round_is_left() -> None:
    one, other = TORUS.nic("p0.s0.h0.r0"), TORUS.nic("p0.s7.h0.r0")
    last = {link.name for link in TORUS.links_of("p0.s7.t0.0") if link.is_routed}
    assert joined(TORUS, one, other, frozenset(sorted(last)[1:]))
    assert not joined(TORUS, one, other, frozenset(last))


@pytest.mark.parametrize("preset", ["tiny-torus", "tiny-ub-mesh", "tiny-dragonfly", "tiny-slim-fly"])
def test_every_part_keeps_its_name_on_the_same_network_and_has_one_on_another(preset: str) -> None:
    parts, there = FabricParts(load_fabric(preset)), FabricParts(load_fabric("tiny-torus"))
    moving = Moving(parts.all, parts)
    assert [moving.moved(part) for part in parts.all] == [part.name for part in parts.all]
    links = [part for part in parts.all if part.sort == "mesh link"]
    assert Moving(links[:1], there).moved(links[0]) in MESH
