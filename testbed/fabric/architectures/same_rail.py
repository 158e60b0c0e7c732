"""Same-rail: Aggs of one rail and one port of its NICs each, Cores above all of them.

Tencent's Astral (SIGCOMM 2025) joins the ToRs of one rail by Aggs of their own, so that a
pod has as many segments as an Agg has ports down. Cores lead from rail to rail, and from the ToRs of a NIC's one port
to those of its other. NVIDIA's DGX SuperPOD of 16 and 32 scalable units is the same with one port: rail groups of
leaves and spines, and a core tier.

A Core has one Agg of each pod, rail and port if there are as many ``core_groups`` as ``aggs``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset, Problem
from hpn.testbed.fabric.architectures.wiring import NOT_STACKED, ONE_PLANE, racks, to_cores, up
from hpn.testbed.fabric.builder import Builder
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec

_NAME = "same-rail"


def _build(spec: FabricSpec) -> Fabric:
    """Build ``aggs`` Aggs for each pod, rail and port; those of port k are numbers k x ``aggs`` and on."""
    builder = Builder(spec)
    ports = spec.ports_of_nic
    sets = racks(builder, tors=ports, planes=1)
    cores = [builder.core(0, i) for i in range(spec.cores)]
    for pod, rail, port in product(range(spec.pods), range(spec.rails), range(ports)):
        aggs = [builder.rail_agg(pod, rail, port * spec.aggs + i) for i in range(spec.aggs)]
        up(builder, [rack[port] for rack in sets if (rack[port].pod, rack[port].rail) == (pod, rail)], aggs)
        to_cores(builder, aggs, cores)
    return builder.finish(planes=1, core_ports=ARCHITECTURE.core_ports)


def _contradictions(spec: FabricSpec) -> Iterator[Problem]:
    """Yield what leaves rails apart, preset ports of Cores, and Cores with several Aggs of one rail and port."""
    if spec.aggs == 0:
        yield ("aggs",), "aggs is 0, but nothing else joins the segments of a rail; write at least 1"
    if spec.cores == 0:
        text = "cores is 0, but only Cores lead from rail to rail, and from ToR to ToR of a NIC"
        yield ("cores",), f"{text}; write {max(1, spec.aggs)}, or architecture: rail-only"
    if spec.core_ports == "preset":
        yield ("core_ports",), "core_ports is preset, which maps pods and not rails; leave it out, or write hash"
    if spec.cores and spec.aggs and spec.nic_ports != 1 and spec.core_groups != spec.aggs:
        text = "a Core has one Agg of each rail and port, as published"
        yield ("core_groups",), f"core_groups is {spec.core_groups}, but {text}; write {spec.aggs}"


ARCHITECTURE = Architecture(
    _NAME,
    "Aggs of one rail and one NIC port each below Cores that join them all, two ToRs per segment and rail",
    {"planes": ONE_PLANE, "stack": NOT_STACKED},
    _build,
    _contradictions,
    core_ports="hash",
    presets=(
        Preset(
            "4 hosts x 2 rails in 2 segments, 2 Aggs per rail and port, 2 Cores: Tencent's Astral in 22 nodes",
            FabricSpec(
                name="tiny-same-rail",
                architecture=_NAME,
                segments=2,
                hosts=2,
                rails=2,
                aggs=2,
                cores=2,
                core_groups=2,
            ),
        ),
        Preset(
            "DGX SuperPOD of 16 scalable units: 4,096 GPUs, 128 leaves, 128 spines, 64 cores; for plan, not for up",
            FabricSpec(
                name="superpod-16",
                architecture=_NAME,
                nic_ports=1,
                pods=4,
                segments=4,
                hosts=32,
                rails=8,
                aggs=4,
                uplinks=8,
                cores=64,
                core_groups=2,
                switch_capacity=25_600 * 10**9,
            ),
        ),
    ),
)
