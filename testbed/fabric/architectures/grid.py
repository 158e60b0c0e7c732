"""Direct networks whose switches have coordinates: the torus, and the full mesh along each dimension.

* Torus: each switch is joined with the next and the last one along each dimension, round the end. Google's TPU v4 has
  three dimensions (Jouppi et al., ISCA 2023, arXiv 2304.01433). A dimension of two has one link, as in a hypercube.
* Full mesh: each switch is joined with all that differ in one coordinate (Ahn et al., HyperX, SC 2009). Huawei's
  UB-Mesh (arXiv 2503.20377) joins NPUs so, in four dimensions up to a pod. There an NPU is its own switch, and links of
  each dimension have a width of their own; here all have ``uplink_rate``.

The last coordinate changes fastest, and pods are the first coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import prod

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset, Problem
from hpn.testbed.fabric.architectures.direct import MEANINGLESS, PER_SWITCH, Pair, built, pair
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec

Joined = Callable[[int, int], Iterable[int]]
"""Coordinates that one is joined with along a dimension, by that coordinate and the size of the dimension."""

_NAMED = "dimensions"


def ring(at: int, size: int) -> Iterable[int]:
    """Return the neighbours in a ring."""
    return {(at + 1) % size, (at - 1) % size}


def everyone(at: int, size: int) -> Iterable[int]:
    """Return all others."""
    return (other for other in range(size) if other != at)


def grid_pairs(sizes: Iterable[int], joined: Joined) -> set[Pair]:
    """Return the pairs of switches that are joined along some dimension."""
    found: set[Pair] = set()
    sizes = tuple(sizes)
    step = prod(sizes)
    for size in sizes:
        step //= size
        for switch in range(prod(sizes)):
            at = switch // step % size
            found |= {pair(switch, switch + (other - at) * step) for other in joined(at, size)}
    return found


def _build(joined: Joined, spec: FabricSpec) -> Fabric:
    return built(spec, grid_pairs(spec.dimensions or (), joined))


def _contradictions(name: str, spec: FabricSpec) -> Iterator[Problem]:
    """Yield dimensions that are missing, join nothing, or have another number of switches."""
    sizes = spec.dimensions
    if sizes is None:
        text = f"architecture {name} needs dimensions, the switches along each"
        yield ("architecture",), f"{text}; write dimensions: [{spec.pods}, {max(2, spec.segments)}]"
        return
    for number, size in enumerate(sizes):
        if size == 1:
            text = f"dimensions[{number}] is 1, and a {name} of one switch along a dimension joins nothing"
            yield (_NAMED, number), f"{text}; write 2 or more, or leave the dimension out"
    switches = prod(sizes)
    if spec.pods * spec.segments != switches:
        shape = " x ".join(map(str, sizes))
        text = f"pods x segments are {spec.pods * spec.segments} switches, but {shape} dimensions have {switches}"
        yield ("segments",), f"{text}; write {_way_out(spec.pods, switches)}"


def _way_out(pods: int, switches: int) -> str:
    return f"segments: {switches // pods}" if switches % pods == 0 else f"pods: 1 and segments: {switches}"


def _grid(name: str, summary: str, joined: Joined, *presets: Preset) -> Architecture:
    return Architecture(
        name,
        summary,
        MEANINGLESS,
        partial(_build, joined),
        partial(_contradictions, name),
        cores=False,
        core_ports="hash",
        direct=True,
        own_keys=(_NAMED,),
        presets=presets,
    )


TORUS = _grid(
    "torus",
    "switches in a torus: each joined with its neighbours along each of the dimensions, round the end",
    ring,
    Preset(
        "12 hosts on a torus of 4 x 3 switches, 24 links between these: TPU v4's network in two dimensions",
        FabricSpec(name="tiny-torus", architecture="torus", segments=12, hosts=1, dimensions=[4, 3], bgp=PER_SWITCH),
    ),
)

FULL_MESH = _grid(
    "full-mesh",
    "switches in a grid: each joined with all others along each of the dimensions (UB-Mesh, HyperX)",
    everyone,
    Preset(
        "8 hosts on a full mesh of 4 x 2 switches, 16 links between these: UB-Mesh in two dimensions",
        FabricSpec(
            name="tiny-ub-mesh", architecture="full-mesh", segments=8, hosts=1, dimensions=[4, 2], bgp=PER_SWITCH
        ),
    ),
)
