"""Direct networks whose switches have coordinates, and links along each dimension: of a torus, of a full mesh.

The last coordinate changes fastest, and pods are the first coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import prod

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset, Problem
from hpn.testbed.fabric.architectures.direct import MEANINGLESS, Pair, built, pair
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec

Joined = Callable[[int, int], Iterable[int]]
"""Coordinates that one is joined with along a dimension, by that coordinate and the size of the dimension."""

_NAMED = "dimensions"


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


def grid(name: str, summary: str, joined: Joined, *presets: Preset) -> Architecture:
    """Return the architecture of grids whose switches are ``joined`` so along each dimension."""
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
