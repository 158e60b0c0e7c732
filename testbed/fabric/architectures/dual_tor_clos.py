"""Dual-ToR below one shared Clos plane: BGP alone moves traffic to the other ToR (paper section 4)."""

from __future__ import annotations

from testbed.fabric.architectures.wiring import rail_fabric
from testbed.fabric.model import Fabric
from testbed.fabric.spec import FabricSpec

NAME = "dual-tor-clos"
SUMMARY = "non-stacked dual-ToR below a single plane: both ToRs of a set uplink to the same Aggs"


def build(spec: FabricSpec) -> Fabric:
    """Two ToRs per segment and rail, every ToR linked to every Agg of the pod."""
    return rail_fabric(spec, tors_per_set=2, planes=1, nic_ports=2)
