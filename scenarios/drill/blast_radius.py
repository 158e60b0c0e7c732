"""Blast radius of a planned fault: the relation of each flow to it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hpn.failover.analysis.edges import hit_links, relation_of
from hpn.failover.analysis.model import Edge, EdgeKind, Relation
from hpn.failover.faults import Fault
from hpn.testbed.fabric.model import Fabric, LinkKind, Nic
from hpn.traffic.flows.flow import FlowSpec


def transit_flows(fabric: Fabric, faults: Iterable[Fault], flows: Sequence[FlowSpec]) -> tuple[int, ...]:
    """Return the ids of flows that may cross a link above the ToRs, hit by faults of one instant.

    Flows that leave or enter a rack upwards cross links above its ToR. Flows that leave or enter a pod cross links
    above its Aggs. Flows between NICs on the same ToRs stay below. With valleys in paths any link may be crossed.
    """
    links = [link for fault in faults for link in fault.links_hit(fabric)]
    tors = {link.lower.node for link in links if link.kind is LinkKind.FABRIC}
    pods = {fabric.node(link.lower.node).pod for link in links if link.kind is LinkKind.CORE}

    def may_cross(flow: FlowSpec) -> bool:
        ends = [fabric.nic(flow.src_nic), fabric.nic(flow.dst_nic)]
        racks = [_tors_of(nic) for nic in ends]
        of_pods = {fabric.node(nic.host).pod for nic in ends}
        leaves_rack = racks[0] != racks[1] and (fabric.spec.bgp.valleys or any(rack & tors for rack in racks))
        return leaves_rack or (len(of_pods) == 2 and bool(of_pods & pods))

    return tuple(flow.id for flow in flows if may_cross(flow)) if tors or pods else ()


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


def _tors_of(nic: Nic) -> frozenset[str]:
    return frozenset(link.upper.node for link in nic.links)
