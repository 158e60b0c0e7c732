"""Rail-only: every rail a network by itself, no switch between rails (Wang et al., arXiv 2307.12169).

Rail switches are our ToRs, one port per NIC as in that paper; a rail larger than one switch is a two-tier Clos of its
own. Traffic that must change rails does so inside a host. DeepSeek-V3's multi-plane fat tree (arXiv 2505.09343, table
3) is this by another name: each of a host's eight NICs is in a plane of its own, a two-layer fat tree.
"""

from __future__ import annotations

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset
from hpn.testbed.fabric.architectures.wiring import NOT_STACKED, ONE_PLANE, ONE_PORT, ONE_TOR, racks, up
from hpn.testbed.fabric.builder import Builder
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec

_ONE_NETWORK = "a rail is one network with nothing above its Aggs; write more segments"


def _build(spec: FabricSpec) -> Fabric:
    """Build one ToR per segment and rail, and ``aggs`` Aggs for each rail alone."""
    builder = Builder(spec)
    sets = racks(builder, tors=1, planes=1)
    for rail in range(spec.rails):
        aggs = [builder.rail_agg(0, rail, i) for i in range(spec.aggs)]
        up(builder, [tor for (tor,) in sets if tor.rail == rail], aggs)
    return builder.finish(planes=1, rails_meet=spec.rails == 1)


ARCHITECTURE = Architecture(
    "rail-only",
    "each rail a network of its own, one ToR per segment and rail, one uplink per NIC",
    {
        "pods": _ONE_NETWORK,
        "cores": _ONE_NETWORK,
        "core_groups": _ONE_NETWORK,
        "core_rate": _ONE_NETWORK,
        "core_ports": _ONE_NETWORK,
        "lacp.port_id_offset": ONE_TOR,
        "nic": ONE_PORT,
        "nic_ports": ONE_PORT,
        "planes": ONE_PLANE,
        "stack": NOT_STACKED,
    },
    _build,
    cores=False,
    presets=(
        Preset(
            "4 hosts x 2 rails, each rail 2 ToRs and 2 Aggs of its own: no way between the rails",
            FabricSpec(name="tiny-rail-only", architecture="rail-only", segments=2, hosts=2, rails=2, aggs=2),
        ),
        Preset(
            "DeepSeek-V3's fat tree of eight planes: 16,384 GPUs, 768 switches of 64 x 400G; for plan, not for up",
            FabricSpec(
                name="deepseek-planes",
                architecture="rail-only",
                segments=64,
                hosts=32,
                rails=8,
                aggs=32,
                switch_capacity=25_600 * 10**9,
            ),
        ),
    ),
)
