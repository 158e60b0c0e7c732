"""Dual-ToR below one shared Clos plane: BGP alone moves traffic to the other ToR (paper section 4)."""

from __future__ import annotations

from hpn.testbed.fabric.architectures.architecture import Architecture
from hpn.testbed.fabric.architectures.wiring import NOT_STACKED, ONE_PLANE, clos, racks
from hpn.testbed.fabric.builder import Builder
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec


def _build(spec: FabricSpec) -> Fabric:
    """Build two ToRs per segment and rail, every ToR linked to every Agg of the pod."""
    builder = Builder(spec)
    clos(builder, racks(builder, tors=spec.ports_of_nic, planes=1), planes=1)
    return builder.finish(planes=1)


ARCHITECTURE = Architecture(
    "dual-tor-clos",
    "non-stacked dual-ToR below a single plane: both ToRs of a set uplink to the same Aggs",
    {"planes": ONE_PLANE, "stack": NOT_STACKED},
    _build,
)
