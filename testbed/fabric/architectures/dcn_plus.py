"""DCN+: what HPN replaced. Dual-ToR without rails, single plane, three tiers (the paper's own baseline).

All NICs of a host hang on the two ToRs of its segment, and what leaves the segment crosses Agg, then Core. Its Cores
hash: the paper gives preset ports to HPN's own core tier only.
"""

from __future__ import annotations

from testbed.fabric.architectures.wiring import NOT_STACKED, clos, racks
from testbed.fabric.builder import Builder
from testbed.fabric.model import Fabric
from testbed.fabric.spec import FabricSpec

NAME = "dcn-plus"
SUMMARY = "three-tier Clos without rails: all NICs of a host on the same two ToRs"
MEANINGLESS = {"stack": NOT_STACKED}


def build(spec: FabricSpec) -> Fabric:
    """Two ToRs per segment, both in one plane; ``rails`` is just the number of NICs of a host."""
    builder = Builder(spec)
    clos(builder, racks(builder, tors=2, planes=1, per_rail=False), planes=1)
    return builder.finish(planes=1, core_ports="hash")
