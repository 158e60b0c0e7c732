"""Torus: each switch is joined with its neighbours along each dimension, round the end.

Google's TPU v4 has three dimensions (Jouppi et al., ISCA 2023, arXiv 2304.01433). A dimension of two has one link, as
in a hypercube.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpn.testbed.fabric.architectures.architecture import Preset
from hpn.testbed.fabric.architectures.direct import PER_SWITCH
from hpn.testbed.fabric.architectures.grid import grid
from hpn.testbed.fabric.spec import FabricSpec

_NAME = "torus"


def ring(at: int, size: int) -> Iterable[int]:
    """Return the neighbours in a ring."""
    return {(at + 1) % size, (at - 1) % size}


ARCHITECTURE = grid(
    _NAME,
    "switches in a torus: each joined with its neighbours along each of the dimensions, round the end",
    ring,
    Preset(
        "12 hosts on a torus of 4 x 3 switches, 24 links between these: TPU v4's network in two dimensions",
        FabricSpec(name="tiny-torus", architecture=_NAME, segments=12, hosts=1, dimensions=[4, 3], bgp=PER_SWITCH),
    ),
)
