"""Wiring that rail-based architectures share: ToR sets per segment and rail, Aggs per plane, an optional Core."""

from __future__ import annotations

from testbed.fabric.builder import Builder, scaled
from testbed.fabric.model import Fabric, LinkKind, Node
from testbed.fabric.spec import FabricSpec


def rail_fabric(spec: FabricSpec, *, tors_per_set: int, planes: int, nic_ports: int) -> Fabric:
    """A fabric with one ToR set per segment and rail; ToR k of a set belongs to plane k modulo ``planes``.

    A NIC's whole rate is spread over ``nic_ports`` ports, port k to ToR k.
    """
    builder = Builder(spec)
    access_rate = scaled(spec.nic_port_rate * 2 // nic_ports, spec)
    tors: dict[tuple[int, int], list[Node]] = {}  # pod, plane
    for pod in range(spec.pods):
        for segment in range(spec.segments):
            hosts = [builder.host(pod, segment, h) for h in range(spec.hosts + spec.spare_hosts)]
            for rail in range(spec.rails):
                rack = [builder.tor(pod, segment, rail, k, k % planes) for k in range(tors_per_set)]
                for tor in rack:
                    tors.setdefault((pod, tor.index % planes), []).append(tor)
                for host in hosts:
                    builder.nic(host, rail, rack, access_rate)
    _upper_tiers(builder, tors, planes)
    return builder.finish(planes)


def _upper_tiers(builder: Builder, tors: dict[tuple[int, int], list[Node]], planes: int) -> None:
    spec = builder.spec
    cores = [[builder.core(plane, i) for i in range(spec.cores)] for plane in range(planes)]
    for pod in range(spec.pods):
        for plane in range(planes):
            aggs = [builder.agg(pod, plane, i) for i in range(spec.aggs)]
            for tor in tors[pod, plane]:
                for agg in aggs:
                    builder.cable(LinkKind.FABRIC, tor, agg, scaled(spec.uplink_rate, spec))
            for agg in aggs:
                for core in cores[plane]:
                    builder.cable(LinkKind.CORE, agg, core, scaled(spec.core_rate, spec))
