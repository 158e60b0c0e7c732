"""Wiring that architectures share: ToR sets and their hosts, Aggs above each plane, an optional Core."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hpn.testbed.fabric.builder import Builder, scaled
from hpn.testbed.fabric.model import LinkKind, Node

ToRSet = tuple[Node, ...]

NOT_STACKED = "its ToRs are not stacked; leave it out, or write architecture: stacked-dual-tor"
ONE_PORT = "a NIC has one port, so there is nothing to select; leave it out"
ONE_PLANE = "all its ToRs are of one plane; leave it out, or write architecture: hpn"
ONE_TOR = "a set has one ToR, so no port ID can be taken twice; leave it out"


def racks(builder: Builder, *, tors: int, planes: int, per_rail: bool = True) -> list[ToRSet]:
    """Add hosts and their ToR sets: ``tors`` ToRs per segment and rail, or per segment when not ``per_rail``.

    ToR k of a set belongs to plane k modulo ``planes``. A NIC has a port to each ToR of its set, port k to ToR k. A NIC
    with one port has the rate of two.
    """
    spec = builder.spec
    rate_bps = scaled(spec.nic_port_rate * (2 if tors == 1 else 1), spec)
    rails = range(spec.rails)
    sets: list[ToRSet] = []
    for pod, segment in product(range(spec.pods), range(spec.segments)):
        hosts = [builder.host(pod, segment, h) for h in range(spec.hosts + spec.spare_hosts)]
        for served in [[rail] for rail in rails] if per_rail else [rails]:
            only = served[0] if per_rail else None
            rack = tuple(builder.tor(pod, segment, only, k, k % planes) for k in range(tors))
            sets.append(rack)
            for host, rail in product(hosts, served):
                builder.nic(host, rail, rack, rate_bps)
    return sets


def clos(builder: Builder, sets: Sequence[ToRSet], *, planes: int) -> None:
    """Wire the tiers above the ToRs, each plane separately: ToRs to all Aggs of the pod, Aggs to their Core group."""
    spec = builder.spec
    tors = [tor for rack in sets for tor in rack]
    cores = [[builder.core(plane, i) for i in range(spec.cores)] for plane in range(planes)]
    for pod, plane in product(range(spec.pods), range(planes)):
        aggs = [builder.agg(pod, plane, i) for i in range(spec.aggs)]
        up(builder, [tor for tor in tors if (tor.pod, tor.plane) == (pod, plane)], aggs)
        to_cores(builder, aggs, cores[plane])


def up(builder: Builder, tors: Sequence[Node], aggs: Sequence[Node]) -> None:
    """Link every one of these ToRs to every one of these Aggs."""
    spec = builder.spec
    for tor, agg in product(tors, aggs):
        builder.cable(LinkKind.FABRIC, tor, agg, scaled(spec.uplink_rate, spec), spec.uplinks)


def to_cores(builder: Builder, aggs: Sequence[Node], cores: Sequence[Node]) -> None:
    """Link these Aggs to Cores of their group: Aggs 0 to 3 of 8 are group 0 of 2, and so on; Cores likewise."""
    spec = builder.spec
    for (at, agg), core in product(enumerate(aggs), cores):
        if at * spec.core_groups // len(aggs) == core.index * spec.core_groups // len(cores):
            builder.cable(LinkKind.CORE, agg, core, scaled(spec.core_rate, spec))
