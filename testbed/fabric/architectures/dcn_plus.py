"""DCN+, the predecessor of HPN: dual-ToR without rails, single plane, three tiers (the paper's own baseline).

All NICs of a host connect to the two ToRs of its segment. Traffic that leaves the segment crosses Agg, then Core. Its
Cores use hashing: the paper gives preset ports to HPN's own core tier only.

``nic_ports: 1`` is a spine-leaf network: one ToR per rack for all NICs of its hosts. Meta's cluster for Llama 3 (arXiv
2407.21783, section 3.3.1) has 24,576 GPUs in 8 pods of 192 racks, 16 GPUs a rack, 1:1 in a pod and 7:1 above. It does
not say how many switches: 16 Aggs a pod (1:1 at one link each) and 28 Cores (6.9:1) are ours.
"""

from __future__ import annotations

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset
from hpn.testbed.fabric.architectures.wiring import NOT_STACKED, ONE_PLANE, clos, racks
from hpn.testbed.fabric.builder import Builder
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec

_DCN_PLUS_POD: dict[str, int] = {"segments": 4, "hosts": 16, "rails": 8, "aggs": 8, "uplinks": 8}


def _build(spec: FabricSpec) -> Fabric:
    """Build two ToRs per segment, both in one plane; ``rails`` is just the number of NICs of a host."""
    builder = Builder(spec)
    clos(builder, racks(builder, tors=spec.ports_of_nic, planes=1, per_rail=False), planes=1)
    return builder.finish(planes=1, core_ports=ARCHITECTURE.core_ports)


ARCHITECTURE = Architecture(
    "dcn-plus",
    "three-tier Clos without rails: all NICs of a host on the same two ToRs",
    {"planes": ONE_PLANE, "stack": NOT_STACKED},
    _build,
    core_ports="hash",
    presets=(
        Preset(
            "4 hosts x 2 NICs in 2 DCN+ pods of 2 segments: three tiers, no rails, parallel uplinks, in 20 nodes",
            FabricSpec(
                name="tiny-dcn-plus",
                architecture="dcn-plus",
                pods=2,
                segments=2,
                hosts=1,
                rails=2,
                aggs=2,
                uplinks=2,
                cores=4,
                core_groups=2,
            ),
        ),
        Preset(
            "6 hosts x 2 NICs in 3 racks of one ToR each: spine-leaf without rails, as Meta's and Ascend's, 1:1",
            FabricSpec(
                name="tiny-spine-leaf",
                architecture="dcn-plus",
                nic_ports=1,
                segments=3,
                hosts=2,
                rails=2,
                aggs=2,
                uplinks=2,
            ),
        ),
        Preset(
            "Meta's cluster for Llama 3: 24,576 GPUs in 8 pods of 192 racks, 7:1 above pods; for plan, not for up",
            FabricSpec(
                name="meta-24k",
                architecture="dcn-plus",
                nic_ports=1,
                pods=8,
                segments=192,
                hosts=2,
                rails=8,
                aggs=16,
                cores=28,
                switch_capacity=230_400 * 10**9,
            ),
        ),
        Preset(
            "one DCN+ pod: 512 GPUs in 4 segments of 16 hosts on 2 ToRs, 8 Aggs, 1:1; for plan, not for up",
            FabricSpec(name="dcn-plus-pod", architecture="dcn-plus", **_DCN_PLUS_POD),
        ),
        Preset(
            "32 DCN+ pods: 16,384 GPUs below 128 Cores in two groups, 1:1 up to the top; for plan, not for up",
            FabricSpec(name="dcn-plus", architecture="dcn-plus", pods=32, cores=128, core_groups=2, **_DCN_PLUS_POD),
        ),
    ),
)
