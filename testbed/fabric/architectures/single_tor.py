"""Single-ToR: one uplink per NIC at its full rate, one plane; replaced by dual-ToR (paper section 4)."""

from __future__ import annotations

from hpn.testbed.fabric.architectures.architecture import Architecture
from hpn.testbed.fabric.architectures.wiring import NOT_STACKED, ONE_PORT, ONE_TOR, clos, racks
from hpn.testbed.fabric.builder import Builder
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec


def _build(spec: FabricSpec) -> Fabric:
    """Build one ToR per segment and rail; the NIC has one port of twice the port rate."""
    builder = Builder(spec)
    clos(builder, racks(builder, tors=1, planes=1), planes=1)
    return builder.finish(planes=1)


ARCHITECTURE = Architecture(
    "single-tor",
    "one ToR per segment and rail, one uplink per NIC",
    {"stack": NOT_STACKED, "lacp.port_id_offset": ONE_TOR, "nic": ONE_PORT},
    _build,
)
