"""HPN: non-stacked dual-ToR, dual plane. Port k of a NIC goes to ToR k, in plane k (paper sections 4, 6).

Planes are a number: NICs of eight ports in eight planes are the networks of MRC (OCP, 2026). Oracle's Acceleron splits
an 800G NIC into four planes of 200G, each a Clos (Oracle's blog on multiplanar networks, 2025); it gives no counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset, Problem
from hpn.testbed.fabric.architectures.wiring import NOT_STACKED, clos, racks
from hpn.testbed.fabric.builder import Builder
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec

_PRESETS = (
    Preset(
        "4 hosts x 2 rails in 2 segments: the smallest fabric with a permutation across segments; drills in seconds",
        FabricSpec(name="tiny", segments=2, hosts=2, rails=2, aggs=2),
    ),
    Preset(
        "tiny with a spare host in each segment: the smallest fabric in which a dead host is replaced",
        FabricSpec(name="tiny-spare", segments=2, hosts=2, spare_hosts=1, rails=2, aggs=2),
    ),
    Preset(
        "8 hosts x 2 rails in 2 segments, 4 Aggs per plane: enough paths for ECMP to matter",
        FabricSpec(name="small", segments=2, hosts=4, rails=2, aggs=4),
    ),
    Preset(
        "4 hosts in 2 HPN pods, 2 Cores per plane: the core tier in 20 nodes",
        FabricSpec(name="tiny-pods", pods=2, segments=1, hosts=2, aggs=2, cores=2),
    ),
    Preset(
        "132 hosts x 1 rail in 6 segments: 164 nodes and 384 links, the size of the bring-up benchmark",
        FabricSpec(name="medium", segments=6, hosts=22, rails=1, aggs=10),
    ),
    Preset(
        "64 GPUs in one segment with 16 ToRs and 16 Aggs: the inventory check against SimAI's generator",
        FabricSpec(name="paper-64", segments=1, hosts=8, rails=8, aggs=8),
    ),
    Preset(
        "one rail of a whole HPN segment: 128 hosts (+ 8 spare) on one dual-ToR set; needs no raised limit",
        FabricSpec(name="segment-1rail", segments=1, hosts=128, spare_hosts=8, rails=1, aggs=4),
    ),
    Preset(
        "one whole HPN segment: 1,024 GPUs on 128 hosts (+ 8 spare), 16 ToRs, 60 Aggs per plane",
        FabricSpec(name="segment", segments=1, hosts=128, spare_hosts=8, rails=8, aggs=60),
    ),
    Preset(
        "one whole HPN pod: 15 segments, 15,360 GPUs (+ 960 spare), 240 ToRs, 120 Aggs; for plan, not for up",
        FabricSpec(name="pod", segments=15, hosts=128, spare_hosts=8, rails=8, aggs=60),
    ),
    Preset(
        "two HPN pods under a core tier: 30,720 GPUs, Aggs 15:1 oversubscribed upwards; for plan, not for up",
        FabricSpec(name="pods", pods=2, segments=15, hosts=128, spare_hosts=8, rails=8, aggs=60, cores=8),
    ),
    Preset(
        "4 hosts whose NICs have 4 ports of 200G in 4 planes, as Oracle's Acceleron has them: 20 nodes",
        FabricSpec(name="tiny-four-planes", segments=2, hosts=2, planes=4, aggs=2),
    ),
)


def _build(spec: FabricSpec) -> Fabric:
    """Build a ToR per segment, rail and port of a NIC; port k is of plane k modulo the number of planes."""
    builder = Builder(spec)
    sets = racks(builder, tors=spec.ports_of_nic, planes=spec.planes)
    clos(builder, sets, planes=spec.planes)
    return builder.finish(planes=spec.planes)


def _contradictions(spec: FabricSpec) -> Iterable[Problem]:
    """Yield ports of a NIC that its planes cannot share."""
    ports = spec.ports_of_nic
    if ports % spec.planes:
        most = -(-ports // spec.planes) * spec.planes
        yield ("nic_ports",), f"nic_ports is {ports}, which {spec.planes} planes cannot share; write {most}"


ARCHITECTURE = Architecture(
    "hpn",
    "non-stacked dual-ToR, two planes (or up to eight) that share nothing above the NIC",
    {"stack": NOT_STACKED},
    _build,
    _contradictions,
    presets=_PRESETS,
)
