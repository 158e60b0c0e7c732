"""Placement of a job: which GPUs of a fabric it gets, in which rank order. PURE.

Ranks count host by host, in a host rail by rail. A scheduler decides the order of hosts. The number of segments of a
job, and how often neighbours are in different ones, decide the load of the network above the ToRs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Node
from hpn.traffic.collectives.locations import Place

Segments = Sequence[Sequence[Node]]


@dataclass(frozen=True, slots=True)
class Order:
    """A scheduler's order of the hosts of a job, given by segment; the random source is the job's."""

    name: str
    summary: str  # for docs/drills.md
    arrange: Callable[[Segments, random.Random], list[Node]]


def _contiguous(segments: Segments, _: random.Random) -> list[Node]:
    return [host for segment in segments for host in segment]


def _interleaved(segments: Segments, _: random.Random) -> list[Node]:
    longest = max(len(segment) for segment in segments)
    return [segment[at] for at in range(longest) for segment in segments if at < len(segment)]


def _random(segments: Segments, rng: random.Random) -> list[Node]:
    return rng.sample(_contiguous(segments, rng), sum(len(segment) for segment in segments))


ORDERS: Registry[Order] = Registry(
    "order of hosts",
    lambda order: order.name,
    (
        Order("contiguous", "segment by segment: neighbours share one wherever they can", _contiguous),
        Order("interleaved", "segments in turn: neighbours never share one while there are two", _interleaved),
        Order("random", "drawn by the seed", _random),
    ),
    of=Order,
)
"""Orders of hosts, by their name in a drill file."""


def place(
    fabric: Fabric,
    *,
    hosts: int | None = None,
    rails: int | None = None,
    segments: int | None = None,
    order: str = "contiguous",
    seed: int = 0,
) -> tuple[Place, ...]:
    """Return the ranks' places on ``hosts`` active hosts (default: all), with GPUs on the first ``rails`` of each.

    ``segments``: spread evenly over this many (a job of 296 hosts is in 3 segments of HPN and in 19 of DCN+). If left
    out, the order decides among all hosts, and 'contiguous' fills one segment after the other. InputError when the
    fabric has too few hosts, segments or rails.
    """
    if order not in ORDERS:
        raise InputError(f"no order of hosts {order!r}; there are {', '.join(ORDERS)}")
    there = _active(fabric)
    wanted = sum(len(segment) for segment in there) if hosts is None else hosts
    chosen = _spread(there, wanted, segments)
    arranged = ORDERS[order].arrange(chosen, random.Random(seed))[:wanted]
    if len(arranged) < wanted or not wanted:
        raise InputError(f"the job asks for {wanted} hosts and the fabric has {len(arranged)} active ones", ("hosts",))
    number = {id(host): at for at, segment in enumerate(there) for host in segment}
    return tuple(place for host in arranged for place in _places(fabric, host, number[id(host)], rails))


def place_of(fabric: Fabric, host: str, rail: int = 0) -> Place:
    """Return the place on ``rail`` of a host by name. InputError when there is none."""
    node = fabric.node(host)
    if node not in fabric.hosts:
        hosts = ", ".join(each.name for each in fabric.hosts[:3])
        raise InputError(f"{host} is no host; write one of {hosts}, ...")
    number = next((at for at, segment in enumerate(_all(fabric)) if node in segment), 0)
    return _places(fabric, node, number, rail + 1)[rail]


def _spread(segments: Segments, wanted: int, over: int | None) -> Segments:
    """Return the candidate hosts: all of them, or each share of the first ``over`` segments."""
    if over is None:
        return segments
    shares = [(wanted + over - 1 - at) // over for at in range(over)] if over > 0 else []
    taken = [segment[:share] for segment, share in zip(segments, shares, strict=False)]
    if not shares or shares[-1] < 1 or [len(hosts) for hosts in taken] != shares:
        raise InputError(
            f"the job asks for {wanted} hosts over {over} segments; the fabric has {len(segments)} segments"
            f" with {', '.join(str(len(segment)) for segment in segments)} active hosts",
            ("segments", "hosts"),
        )
    return taken


def _active(fabric: Fabric) -> Segments:
    return [[host for host in segment if not host.spare] for segment in _all(fabric)]


def _all(fabric: Fabric) -> Segments:
    """Return hosts by segment, counted through all pods."""
    found: dict[tuple[int, int], list[Node]] = {}
    for host in fabric.hosts:
        found.setdefault((host.pod, host.segment or 0), []).append(host)
    return [found[key] for key in sorted(found)]


def _places(fabric: Fabric, host: Node, segment: int, rails: int | None) -> list[Place]:
    nics = fabric.nics_of(host.name)
    at = _coordinates(fabric, host, segment)
    if rails is not None and not 1 <= rails <= len(nics):
        raise InputError(f"the job asks for {rails} GPUs on {host.name}, which has {len(nics)}, one a rail", ("gpus",))
    return [Place(host.name, nic.rail, nic.name, nic.ip, segment, at) for nic in nics[:rails]]


def _coordinates(fabric: Fabric, host: Node, segment: int) -> tuple[int, ...]:
    """Return the coordinates of a host's switch in a grid, or its pod and segment."""
    sizes = fabric.spec.dimensions
    if sizes is None:
        return host.pod, host.segment or 0
    return tuple(segment // prod(sizes[at + 1 :]) % size for at, size in enumerate(sizes))
