"""The blast radius of a planned fault: how each flow stands to it. Pure; the runner and ``scenarios.checks`` ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from failover.edges import hit_links, relation_of
from failover.faults import Fault
from failover.model import Edge, EdgeKind, Relation
from testbed.fabric.model import Fabric, LinkKind, Nic
from traffic.flow import FlowSpec


def transit_flows(fabric: Fabric, fault: Fault, flows: Sequence[FlowSpec]) -> tuple[int, ...]:
    """Ids of flows that may cross a link the fault hits above the ToRs: an end of theirs hangs on that ToR or pod."""
    links = fault.links_hit(fabric)
    tors = {link.lower.node for link in links if link.kind is LinkKind.FABRIC}
    pods = {fabric.node(link.lower.node).pod for link in links if link.kind is LinkKind.CORE}

    def may_cross(flow: FlowSpec) -> bool:
        ends = [fabric.nic(flow.src_nic), fabric.nic(flow.dst_nic)]
        return any(_hangs_on(nic, tors) or fabric.node(nic.host).pod in pods for nic in ends)

    return tuple(flow.id for flow in flows if may_cross(flow)) if tors or pods else ()


def relations(fabric: Fabric, fault: Fault, flows: Sequence[FlowSpec]) -> Mapping[int, Relation]:
    """Flow id to its relation to the fault. InputError when the target is not in ``fabric``."""
    links = hit_links(fabric, [link.name for link in fault.links_hit(fabric)])
    edge = Edge(fault.KIND, EdgeKind.FAILURE, 0, 0, 0, 0, links, fault.nodes_hit(), transit_flows(fabric, fault, flows))
    return {flow.id: relation_of(flow, edge) for flow in flows}


def _hangs_on(nic: Nic, tors: set[str]) -> bool:
    return any(link.upper.node in tors for link in nic.links)
