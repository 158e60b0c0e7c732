"""Single-ToR: one uplink per NIC at its full rate, one plane; replaced by dual-ToR (paper section 4).

With several rails it is the rail-optimised network of others, whose sizes are presets here:

* NVIDIA's DGX SuperPOD (reference architecture, B200: tables of 2 to 8 scalable units) and SimAI's Spectrum-X
  (aliyun/SimAI, gen_Topo_Template.py).
* ByteDance's MegaScale (arXiv 2402.15627, section 3.6): NICs of 200G, two on each 400G port of a ToR, eight rails, 64
  hosts below the same ToRs, three tiers of switches of 64 x 400G, 1:1. More than 10,000 GPUs: 8 pods are ours.
* DeepSeek's Fire-Flyer 2 (arXiv 2408.14158): two zones of 800 ports, each a two-layer fat tree of 40-port switches. A
  few links join them, in a way that is not published: here each Agg has one, to one of two Cores.
"""

from __future__ import annotations

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset
from hpn.testbed.fabric.architectures.wiring import NOT_STACKED, ONE_PLANE, ONE_PORT, ONE_TOR, clos, racks
from hpn.testbed.fabric.builder import Builder
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec

_NAME = "single-tor"
_RADIX_64 = 25_600 * 10**9
"""Capacity of a switch of 64 ports of 400G."""
_RADIX_41 = 8_200 * 10**9
"""Capacity of 40 ports of 200G, and one that joins the zones."""

_PRESETS = (
    Preset(
        "4 hosts x 4 rails in 2 scalable units, 1:1: rail-optimised as DGX SuperPOD and Spectrum-X, in 14 nodes",
        FabricSpec(name="tiny-superpod", architecture=_NAME, segments=2, hosts=2, rails=4, aggs=2),
    ),
    Preset(
        "DGX SuperPOD of 4 scalable units: 1,024 GPUs, 32 leaves and 16 spines of 64 x 400G; for plan, not for up",
        FabricSpec(
            name="superpod",
            architecture=_NAME,
            segments=4,
            hosts=32,
            rails=8,
            aggs=16,
            uplinks=2,
            switch_capacity=_RADIX_64,
        ),
    ),
    Preset(
        "Spectrum-X as SimAI generates it: 4,096 GPUs, 64 leaves, 64 spines; for plan, not for up",
        FabricSpec(name="spectrum-x", architecture=_NAME, segments=8, hosts=64, rails=8, aggs=64),
    ),
    Preset(
        "8 hosts x 2 NICs of 200G in 2 pods of 2 rails, three tiers of 400G, 1:1: MegaScale in 20 nodes",
        FabricSpec(
            name="tiny-megascale",
            architecture=_NAME,
            pods=2,
            segments=1,
            hosts=4,
            rails=2,
            aggs=2,
            cores=4,
            core_groups=2,
            core_ports="hash",
            nic_port_rate=100 * 10**9,
        ),
    ),
    Preset(
        "MegaScale: 16,384 GPUs in 8 pods, 64 hosts below 8 ToRs, switches of 64 x 400G, 1:1; for plan, not for up",
        FabricSpec(
            name="megascale",
            architecture=_NAME,
            pods=8,
            segments=4,
            hosts=64,
            rails=8,
            aggs=32,
            cores=128,
            core_groups=4,
            core_ports="hash",
            nic_port_rate=100 * 10**9,
            switch_capacity=_RADIX_64,
        ),
    ),
    Preset(
        "8 hosts in 2 zones of two tiers each, joined by one link from each Agg: Fire-Flyer 2 in 18 nodes",
        FabricSpec(
            name="tiny-zones",
            architecture=_NAME,
            pods=2,
            segments=2,
            hosts=2,
            aggs=2,
            cores=2,
            core_groups=2,
            core_ports="hash",
            nic_port_rate=100 * 10**9,
            uplink_rate=200 * 10**9,
            core_rate=200 * 10**9,
        ),
    ),
    Preset(
        "Fire-Flyer 2: 2 zones of 800 ports of 200G, 122 switches; for plan, not for up",
        FabricSpec(
            name="fire-flyer",
            architecture=_NAME,
            pods=2,
            segments=40,
            hosts=20,
            aggs=20,
            cores=2,
            core_groups=2,
            core_ports="hash",
            nic_port_rate=100 * 10**9,
            uplink_rate=200 * 10**9,
            core_rate=200 * 10**9,
            switch_capacity=_RADIX_41,
        ),
    ),
)


def _build(spec: FabricSpec) -> Fabric:
    """Build one ToR per segment and rail; the NIC has one port of twice the port rate."""
    builder = Builder(spec)
    clos(builder, racks(builder, tors=1, planes=1), planes=1)
    return builder.finish(planes=1)


ARCHITECTURE = Architecture(
    _NAME,
    "one ToR per segment and rail, one uplink per NIC",
    {"planes": ONE_PLANE, "nic_ports": ONE_PORT, "stack": NOT_STACKED, "lacp.port_id_offset": ONE_TOR, "nic": ONE_PORT},
    _build,
    presets=_PRESETS,
)
