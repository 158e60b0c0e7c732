"""Full mesh: each switch is joined with all that differ in one coordinate (Ahn et al., HyperX, SC 2009).

Huawei's UB-Mesh (arXiv 2503.20377) joins NPUs so, in four dimensions up to a pod. There an NPU is its own switch, and
links of each dimension have a width of their own; here all have ``uplink_rate``.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpn.testbed.fabric.architectures.architecture import Preset
from hpn.testbed.fabric.architectures.direct import PER_SWITCH
from hpn.testbed.fabric.architectures.grid import grid
from hpn.testbed.fabric.spec import FabricSpec

_NAME = "full-mesh"


def everyone(at: int, size: int) -> Iterable[int]:
    """Return all others."""
    return (other for other in range(size) if other != at)


ARCHITECTURE = grid(
    _NAME,
    "switches in a grid: each joined with all others along each of the dimensions (UB-Mesh, HyperX)",
    everyone,
    Preset(
        "8 hosts on a full mesh of 4 x 2 switches, 16 links between these: UB-Mesh in two dimensions",
        FabricSpec(name="tiny-ub-mesh", architecture=_NAME, segments=8, hosts=1, dimensions=[4, 2], bgp=PER_SWITCH),
    ),
)
