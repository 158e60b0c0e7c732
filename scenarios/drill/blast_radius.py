"""Blast radius of a planned fault: the relation of each flow to it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import product

from hpn.failover.analysis.edges import hit_links, relation_of
from hpn.failover.analysis.model import Edge, EdgeKind, Relation
from hpn.failover.faults import Fault
from hpn.testbed.fabric.model import Fabric, LinkKind, Nic, Node
from hpn.traffic.flows.flow import FlowSpec


def transit_flows(fabric: Fabric, faults: Iterable[Fault], flows: Sequence[FlowSpec]) -> tuple[int, ...]:
    """Return the ids of flows that may cross a link above the ToRs, hit by faults of one instant.

    Flows that leave or enter a rack upwards cross links above its ToR. Flows between ToRs of a plane without an Agg in
    common, as those of two pods, cross links above their Aggs; so may those of a NIC that loses one of two such ToRs.
    Flows between NICs on the same ToRs stay below. With valleys in paths any link may be crossed.
    """
    links = [link for fault in faults for link in fault.links_hit(fabric)]
    tors = {link.lower.node for link in links if link.kind in (LinkKind.FABRIC, LinkKind.MESH)}
    aggs = {link.lower.node for link in links if link.kind is LinkKind.CORE}

    def may_cross(flow: FlowSpec) -> bool:
        ends = [fabric.nic(flow.src_nic), fabric.nic(flow.dst_nic)]
        racks = [_tors_of(nic) for nic in ends]
        leaves_rack = racks[0] != racks[1] and (fabric.spec.bgp.valleys or any(rack & tors for rack in racks))
        return leaves_rack or (bool(aggs) and _crosses_cores(fabric, racks, aggs))

    return tuple(flow.id for flow in flows if may_cross(flow)) if tors or aggs else ()


def relations(
    fabric: Fabric, faults: Sequence[Fault], flows: Sequence[FlowSpec], absent: tuple[int, ...] = ()
) -> Mapping[int, Relation]:
    """Return the relation of each flow id to faults of one instant; ``absent`` are inactive flows.

    InputError when a target is not in ``fabric``.
    """
    links = hit_links(fabric, [link.name for fault in faults for link in fault.links_hit(fabric)])
    transit = transit_flows(fabric, faults, flows)
    edge = Edge("", EdgeKind.FAILURE, 0, 0, 0, 0, links, transit_flows=transit, absent=absent)
    return {flow.id: relation_of(flow, edge) for flow in flows}


def _crosses_cores(fabric: Fabric, racks: Sequence[frozenset[str]], aggs: Set[str]) -> bool:
    """Return True if packets between two of these ToRs need Cores, and some of those Aggs are above one of the two."""
    pairs = ((fabric.node(one), fabric.node(other)) for one, other in product(*racks))
    above = ((_aggs_of(fabric, one), _aggs_of(fabric, other)) for one, other in pairs if one.plane == other.plane)
    return any(not here & there and not aggs.isdisjoint(here | there) for here, there in above)


def _aggs_of(fabric: Fabric, tor: Node) -> set[str]:
    return {link.upper.node for link in fabric.links_of(tor.name) if link.kind is LinkKind.FABRIC}


def _tors_of(nic: Nic) -> frozenset[str]:
    return frozenset(link.upper.node for link in nic.links)
