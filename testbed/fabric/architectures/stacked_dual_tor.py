"""Stacked dual-ToR: wired as dual-tor-clos, but the two ToRs of a set act as one switch (paper section 4).

The cost of a stack is modelled too: the peer link takes a port of each ToR.
"""

from __future__ import annotations

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset
from hpn.testbed.fabric.architectures.wiring import ONE_PLANE, clos, racks
from hpn.testbed.fabric.builder import Builder, scaled
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec


def _build(spec: FabricSpec) -> Fabric:
    """Build two ToRs per segment and rail; the one at port 0 of each NIC is the primary."""
    builder = Builder(spec)
    sets = racks(builder, tors=2, planes=1)
    clos(builder, sets, planes=1)
    for primary, secondary in sets:
        builder.stack(primary, secondary, scaled(spec.uplink_rate, spec))
    return builder.finish(planes=1)


ARCHITECTURE = Architecture(
    "stacked-dual-tor",
    "stacked dual-ToR below a single plane: a primary, a secondary and a peer link per set",
    {
        "nic_ports": "a stack is two ToRs; leave it out, or write architecture: dual-tor-clos",
        "planes": ONE_PLANE,
        "lacp.tor_system_ids": "a stack is one LACP speaker; write lacp.system_id, or architecture: dual-tor-clos",
    },
    _build,
    presets=(
        Preset(
            "tiny with stacked ToRs: primary, secondary and peer link per set, below one plane",
            FabricSpec(name="tiny-stacked", architecture="stacked-dual-tor", segments=2, hosts=2, rails=2, aggs=2),
        ),
    ),
)
