"""AllReduce along the dimensions of a direct network: a torus, a grid of full meshes. PURE.

The members are a grid: the coordinates of their switches, then the hosts of a switch, then the GPUs of a host. Each
part of the data takes the dimensions in another order, so that links of all dimensions are in use at once. GPUs of a
host come first and go last, over NVLink.

On a torus each dimension is a ring, and half of the data goes round the other way, so that both directions of a link
carry alike (Sack and Gropp, "Collective algorithms for multiported torus networks", ACM TOPC 2015). In a full mesh
everyone is a link away, so each member sends to each other of its line (UB-Mesh, arXiv 2503.20377).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hpn.testbed.errors import InputError
from hpn.traffic.collectives import levels
from hpn.traffic.collectives.levels import DIRECT, RING, Level
from hpn.traffic.collectives.plan import Plan


def rings(plan: Plan) -> None:
    """Lay out the AllReduce by a ring along each dimension. InputError unless the members are a whole grid."""
    inside, dimensions = _grid(plan, "rings")
    both = (dimensions, [[max(positions) - at for at in positions] for positions in dimensions])
    levels.all_reduce(plan, [(*inside, *(Level(at, RING) for at in way)) for one in both for way in _turned(one)])


def direct(plan: Plan) -> None:
    """Lay out the AllReduce by everyone to everyone along each dimension. InputError as of ``rings``."""
    inside, dimensions = _grid(plan, "direct")
    levels.all_reduce(plan, [(*inside, *(Level(at, DIRECT) for at in way)) for way in _turned(dimensions)])


def _turned(dimensions: Sequence[Sequence[int]]) -> Sequence[Sequence[Sequence[int]]]:
    """Return the dimensions in turn, beginning with each; one empty order if there is none."""
    return [(*dimensions[first:], *dimensions[:first]) for first in range(len(dimensions))] or [()]


def _grid(plan: Plan, name: str) -> tuple[Sequence[Level], Sequence[Sequence[int]]]:
    """Return the level inside of hosts, if they have several members, and positions along each other dimension."""
    hosts: dict[tuple[int, ...], dict[str, int]] = {}
    for place in plan.places:
        beside = hosts.setdefault(place.coordinates, {})
        beside.setdefault(place.host, len(beside))
    points = [(*place.coordinates, hosts[place.coordinates][place.host], place.rail) for place in plan.places]
    *outside, inside = [_positions(values) for values in zip(*points, strict=True)]
    sizes = [max(positions) + 1 for positions in (*outside, inside)]
    if prod(sizes) != plan.members:
        shape = " x ".join(str(size) for size in sizes if size > 1)
        raise InputError(
            f"all-reduce/dimension-{name} needs a whole grid, and these {plan.members} ranks are some of {shape};"
            " take all hosts of the switches along a dimension, or the algorithm ring"
        )
    within = [Level(inside, DIRECT)] if max(inside) else []
    return within, [positions for positions in outside if max(positions)]


def _positions(values: Sequence[int]) -> list[int]:
    """Return the position of each value among those that there are."""
    place = {value: at for at, value in enumerate(sorted(set(values)))}
    return [place[value] for value in values]
