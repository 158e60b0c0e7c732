"""HPN: non-stacked dual-ToR, dual plane. Port k of a NIC goes to ToR k, in plane k (paper sections 4, 6)."""

from __future__ import annotations

from testbed.fabric.architectures.wiring import rail_fabric
from testbed.fabric.model import Fabric
from testbed.fabric.spec import FabricSpec

NAME = "hpn"
SUMMARY = "non-stacked dual-ToR, two planes that share nothing above the NIC"


def build(spec: FabricSpec) -> Fabric:
    """Two ToRs per segment and rail, one in each plane."""
    return rail_fabric(spec, tors_per_set=2, planes=2, nic_ports=2)
