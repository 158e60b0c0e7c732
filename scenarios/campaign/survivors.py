"""Queue pairs that the faults of a sequence may kill, and those that must survive. PURE.

A queue pair must survive while a path is left between its NICs and every fault on other paths is visible. A fault is
visible by carrier, or by a switch's report. A queue pair may fail when no such path is left, or when packets are
dropped silently for about as long as it retries. It may also fail when no path control moves queue pairs between
isolated planes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.model import EdgeKind, Relation
from hpn.failover.faults import MS, Fault, PlannedFault, VisibleTo
from hpn.scenarios.drill.blast_radius import relations
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.routing.distances import Adjacency
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.qp import RetryPolicy

REJOIN_NS = 4000 * MS
"""Time after a repair in which a link may still be unused: LACP has to agree, BGP to reconnect."""

_NEAR = 0.7  # fraction of a queue pair's patience: other faults may have used the rest


@dataclass(frozen=True, slots=True)
class LinkOutage:
    """Links that a fault takes out of use from ``start_ns`` to ``end_ns`` (None: to the end).

    ``seen``: True if the fault is not silent.
    """

    start_ns: int
    end_ns: int | None
    links: frozenset[str]
    fault: Fault
    seen: bool


def outs(fabric: Fabric, faults: Sequence[PlannedFault]) -> tuple[LinkOutage, ...]:
    """Return every interval in which a fault takes links out of use."""
    return tuple(out for planned in faults for out in _outs(fabric, planned))


def _outs(fabric: Fabric, planned: PlannedFault) -> Iterator[LinkOutage]:
    edges = planned.edges
    for at, edge in enumerate(edges):
        if edge.kind is EdgeKind.REPAIR:
            continue
        repairs = [e for e in edges[at:] if e.kind is EdgeKind.REPAIR and e.part in (None, edge.part)]
        end_ns = repairs[0].at_ns if repairs else edge.at_ns if planned.fault.REPAIRS_ITSELF else None
        fault = edge.part or planned.fault
        links = frozenset(link.name for link in fault.links_hit(fabric))
        yield LinkOutage(edge.at_ns, end_ns, links, fault, fault.TELLS is not VisibleTo.NOBODY)


def excuse(fabric: Fabric, faults: Sequence[PlannedFault], flow: FlowSpec) -> str:
    """Return why the queue pair of ``flow`` may fail under these faults, or '' if it must survive."""
    found = outs(fabric, faults)
    patience_ns = RetryPolicy.of(flow).patience_ns
    silent = [out for out in found if not out.seen and _touches(fabric, out.fault, flow)]
    silent_ns = sum(out.end_ns - out.start_ns for out in silent if out.end_ns is not None)
    if any(out.end_ns is None for out in silent) or silent_ns >= _NEAR * patience_ns:
        return f"{silent[0].fault.KIND} of {silent[0].fault.target} drops in silence for too long"
    seen = [out for out in found if out.seen]
    source, target = fabric.nic(flow.src_nic), fabric.nic(flow.dst_nic)
    for moment in seen:
        gone = frozenset[str]().union(*(out.links for out in seen if _holds(out, moment.start_ns)))
        if not joined(fabric, source, target, gone):
            return f"no path is left at {moment.start_ns // MS} ms, {moment.fault.KIND} of {moment.fault.target}"
    policy, binds = fabric.spec.path_control.chosen, fabric.spec.nic.binds
    if fabric.planes > 1 and (policy.agent is None or (binds and not policy.binds)):
        hit = [out for out in seen if _touches(fabric, out.fault, flow)]
        if hit:
            why = "path control is off" if policy.agent is None else "no source port moves a bound queue pair"
            return f"{hit[0].fault.KIND} of {hit[0].fault.target}, and {why}"
    return ""


def _holds(out: LinkOutage, at_ns: int) -> bool:
    return out.start_ns <= at_ns and (out.end_ns is None or at_ns <= out.end_ns + REJOIN_NS)


def _touches(fabric: Fabric, fault: Fault, flow: FlowSpec) -> bool:
    return relations(fabric, (fault,), (flow,))[flow.id] is not Relation.NONE


def joined(fabric: Fabric, one: Nic, other: Nic, gone: frozenset[str]) -> bool:
    """Return True if a path is left without the links in ``gone``: up and then down, unless BGP allows valleys."""
    if fabric.spec.bgp.valleys:
        return bool(_tors(one, gone) & Adjacency(fabric, gone).reach(_tors(other, gone)).distance.keys())
    return bool(_above(fabric, one, gone) & _above(fabric, other, gone))


def _tors(nic: Nic, gone: frozenset[str]) -> set[str]:
    return {link.upper.node for link in nic.links if link.name not in gone}


def _above(fabric: Fabric, nic: Nic, gone: frozenset[str]) -> set[str]:
    """Return the switches that a NIC reaches by going up."""
    reached = _tors(nic, gone)
    edge = list(reached)
    while edge:
        here = edge.pop()
        for link in fabric.links_of(here):
            if link.is_routed and link.lower.node == here and link.name not in gone and link.upper.node not in reached:
                reached.add(link.upper.node)
                edge.append(link.upper.node)
    return reached
