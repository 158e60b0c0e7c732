"""Named fabrics: a topology for every size, each with one line saying what it is good for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.fabric.spec import FabricSpec


@dataclass(frozen=True, slots=True)
class Preset:
    """A named ``FabricSpec`` and one line saying what it is good for."""

    summary: str
    spec: FabricSpec

    @property
    def name(self) -> str:
        """The name it is asked for by."""
        return self.spec.name


_DCN_PLUS_POD: dict[str, int] = {"segments": 4, "hosts": 16, "rails": 8, "aggs": 8, "uplinks": 8}

_ALL = (
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
        "tiny with stacked ToRs: primary, secondary and peer link per set, below one plane",
        FabricSpec(name="tiny-stacked", architecture="stacked-dual-tor", segments=2, hosts=2, rails=2, aggs=2),
    ),
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
        "4 hosts x 2 rails, each rail 2 ToRs and 2 Aggs of its own: no way between the rails",
        FabricSpec(name="tiny-rail-only", architecture="rail-only", segments=2, hosts=2, rails=2, aggs=2),
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
        "one DCN+ pod: 512 GPUs in 4 segments of 16 hosts on 2 ToRs, 8 Aggs, 1:1; for plan, not for up",
        FabricSpec(name="dcn-plus-pod", architecture="dcn-plus", **_DCN_PLUS_POD),
    ),
    Preset(
        "32 DCN+ pods: 16,384 GPUs below 128 Cores in two groups, 1:1 up to the top; for plan, not for up",
        FabricSpec(name="dcn-plus", architecture="dcn-plus", pods=32, cores=128, core_groups=2, **_DCN_PLUS_POD),
    ),
)

PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _ALL}
