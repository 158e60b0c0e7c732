"""Single-ToR: one uplink per NIC at its whole rate, one plane. What dual-ToR replaces (paper section 4)."""

from __future__ import annotations

from testbed.fabric.architectures.wiring import rail_fabric
from testbed.fabric.model import Fabric
from testbed.fabric.spec import FabricSpec

NAME = "single-tor"
SUMMARY = "one ToR per segment and rail, one uplink per NIC"


def build(spec: FabricSpec) -> Fabric:
    """One ToR per segment and rail; the NIC has one port of twice the port rate."""
    return rail_fabric(spec, tors_per_set=1, planes=1, nic_ports=1)
