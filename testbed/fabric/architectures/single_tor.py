"""Single-ToR: one uplink per NIC at its whole rate, one plane. What dual-ToR replaces (paper section 4)."""

from __future__ import annotations

from testbed.fabric.architectures.wiring import NOT_STACKED, ONE_TOR, clos, racks
from testbed.fabric.builder import Builder
from testbed.fabric.model import Fabric
from testbed.fabric.spec import FabricSpec

NAME = "single-tor"
SUMMARY = "one ToR per segment and rail, one uplink per NIC"
MEANINGLESS = {"stack": NOT_STACKED, "lacp.port_id_offset": ONE_TOR}


def build(spec: FabricSpec) -> Fabric:
    """One ToR per segment and rail; the NIC has one port of twice the port rate."""
    builder = Builder(spec)
    clos(builder, racks(builder, tors=1, planes=1), planes=1)
    return builder.finish(planes=1)
