"""Which flows an edge hits, on a real fabric."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.edges import hit_links, relation_of, with_windows
from hpn.failover.analysis.model import EdgeKind, HitLink, Relation
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import LinkKind
from hpn.testbed.fabric.spec import FabricSpec
from tests.failover.synthetic import S, edge, flow


def test_a_hit_link_knows_its_nic_and_a_link_above_has_none() -> None:
    fabric = build(FabricSpec(segments=2, hosts=2, rails=1, aggs=2))
    nic = fabric.nics[0]
    above = next(link for link in fabric.links if link.kind is not LinkKind.ACCESS)
    access, fabric_link = hit_links(fabric, [nic.links[0].name, above.name])
    assert (access.nic, access.host, access.lag, access.ip) == (nic.name, nic.host, nic.lag, nic.ip)
    assert access.lower == f"{nic.host}:{nic.links[0].lower.name}"
    assert fabric_link == HitLink(above.name, above.lower.label, above.upper.label)
    with pytest.raises(InputError):
        hit_links(fabric, ["no.such.link"])


def test_a_flow_is_hit_at_its_source_its_destination_both_on_its_way_or_not_at_all() -> None:
    hit = edge(S, 2 * S)
    assert relation_of(flow(0, src="p0.s0.h0.r0", dst="x"), hit) is Relation.SENDER
    assert relation_of(flow(0, src="x", dst="p0.s0.h0.r0"), hit) is Relation.RECEIVER
    assert relation_of(flow(0, src="p0.s0.h0.r0", dst="p0.s0.h0.r0"), hit) is Relation.BOTH
    assert relation_of(flow(7, src="x", dst="y"), replace(hit, transit_flows=(7,))) is Relation.TRANSIT
    assert relation_of(flow(8, src="x", dst="y"), replace(hit, transit_flows=(7,))) is Relation.NONE


def test_windows_reach_to_the_next_edge() -> None:
    found = with_windows([edge(3 * S, 0, EdgeKind.REPAIR), edge(S, 0)], 9 * S)
    assert [(one.kind, one.window_end_ns) for one in found] == [
        (EdgeKind.FAILURE, 3 * S),
        (EdgeKind.REPAIR, 9 * S),
    ]
