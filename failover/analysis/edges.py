"""Edges of faults as flows see them: affected links, relation of a flow to the fault, end of the window.

Changes when a fault affects a new kind of part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from hpn.failover.analysis.model import Edge, HitLink, Relation
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.traffic.flows.flow import FlowSpec


def hit_links(fabric: Fabric, links: Iterable[str]) -> tuple[HitLink, ...]:
    """Return the links of these names with the data that analysis needs. InputError on an unknown name."""
    found = []
    for name in links:
        link = fabric.link(name)
        hit = HitLink(name, link.lower.label, link.upper.label)
        if link.kind is LinkKind.ACCESS:
            nic = fabric.nic_of_link(name)
            hit = replace(hit, nic=nic.name, host=nic.host, lag=nic.lag, ip=nic.ip)
        found.append(hit)
    return tuple(found)


def relation_of(flow: FlowSpec, edge: Edge) -> Relation:
    """Return the relation of ``flow`` to the fault of ``edge``."""
    return next(relations_of((flow,), edge))


def relations_of(flows: Iterable[FlowSpec], edge: Edge) -> Iterator[Relation]:
    """Yield the relation of each of ``flows`` to the fault of ``edge``."""
    nics, transit, absent = edge.nics, frozenset(edge.transit_flows), frozenset(edge.absent)
    for flow in flows:
        sends, receives = flow.src_nic in nics, flow.dst_nic in nics
        if flow.id in absent:
            yield Relation.ABSENT
        elif sends and receives:
            yield Relation.BOTH
        elif sends:
            yield Relation.SENDER
        elif receives:
            yield Relation.RECEIVER
        else:
            yield Relation.TRANSIT if flow.id in transit else Relation.NONE


def with_windows(edges: Iterable[Edge], end_ns: int) -> tuple[Edge, ...]:
    """Return the edges in order of time, each window ending at the next injection, the last at ``end_ns``."""
    ordered: Sequence[Edge] = sorted(edges, key=lambda edge: edge.inject_before_ns)
    if not ordered:
        return ()
    ends = [edge.inject_before_ns for edge in ordered[1:]] + [end_ns]
    return tuple(replace(edge, window_end_ns=end) for edge, end in zip(ordered, ends, strict=True))
