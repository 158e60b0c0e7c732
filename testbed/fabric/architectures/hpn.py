"""HPN: non-stacked dual-ToR, dual plane. Port k of a NIC goes to ToR k, in plane k (paper sections 4, 6)."""

from __future__ import annotations

from testbed.fabric.architectures.wiring import NOT_STACKED, clos, racks
from testbed.fabric.builder import Builder
from testbed.fabric.model import Fabric
from testbed.fabric.spec import FabricSpec

NAME = "hpn"
SUMMARY = "non-stacked dual-ToR, two planes that share nothing above the NIC"
MEANINGLESS = {"stack": NOT_STACKED}


def build(spec: FabricSpec) -> Fabric:
    """Two ToRs per segment and rail, one in each plane."""
    builder = Builder(spec)
    clos(builder, racks(builder, tors=2, planes=2), planes=2)
    return builder.finish(planes=2)
