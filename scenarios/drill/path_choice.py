"""Check that a job's queue pairs have several paths and enough source ports. PURE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, LinkKind, Nic
from hpn.traffic.flows.flow import SPORT_MAX, SPORT_MIN, FlowSpec


def check_choice(fabric: Fabric, flows: Iterable[FlowSpec], key: str) -> None:
    """Raise InputError when every flow has one path behind its NIC's port, so that ``key`` has no effect."""
    if not any(_has_choice(fabric, fabric.nic(flow.src_nic), fabric.nic(flow.dst_nic)) for flow in flows):
        raise InputError(
            f"{key}: no queue pair has more than one path: its ends share their ToRs, or these have one uplink; leave"
            f" {key} out, write order: interleaved, or take a topology with more segments or aggs"
        )


def check_paths(fabric: Fabric, flows: Iterable[FlowSpec], paths: int) -> None:
    """Raise InputError when a NIC has more ports than a queue pair has paths, or too few source ports for them."""
    ports = max((len(fabric.nic(flow.src_nic).links) for flow in flows), default=1)
    if ports > paths:
        raise InputError(
            f"transport: {paths} paths do not reach all {ports} ports of a NIC; write paths: {ports} or more"
        )


def check_standby(fabric: Fabric, flows: Iterable[FlowSpec], queue_pairs: int) -> None:
    """Raise InputError unless NICs have a standby port, and a connection as many queue pairs at each of its ports."""
    for ports in sorted({len(fabric.nic(flow.src_nic).links) for flow in flows}):
        if ports < 2:
            raise InputError("port_use: NICs with one port have no standby; leave port_use out, or take two ports")
        if queue_pairs % ports:
            raise InputError(f"port_use: {queue_pairs} queue pairs for {ports} ports; write a multiple as queue_pairs")


def _has_choice(fabric: Fabric, src: Nic, dst: Nic) -> bool:
    tors, others = _tors(src), _tors(dst)
    return not tors & others and any(_uplinks(fabric, tor) > 1 for tor in tors)


def _tors(nic: Nic) -> frozenset[str]:
    return frozenset(link.upper.node for link in nic.links)


def _uplinks(fabric: Fabric, tor: str) -> int:
    links = [link for link in fabric.links_of(tor) if link.is_routed]
    return sum(link.lower.node == tor or link.kind is LinkKind.MESH for link in links)


def check_source_ports(flows: Iterable[FlowSpec], ports: int) -> None:
    """Raise InputError when the queue pairs of a NIC cannot have ``ports`` source ports each."""
    there = SPORT_MAX - SPORT_MIN + 1
    nic, most = max(Counter(flow.src_nic for flow in flows).items(), key=lambda each: each[1])
    if most * ports > there:
        raise InputError(
            f"spray: {most} queue pairs of {nic} with {ports} source ports each need {most * ports}, and RoCEv2 has"
            f" {there}; lower ports or queue_pairs"
        )
