"""Ring collectives: every member sends to the next and receives from the one before. PURE.

Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009): each member sends 2
(n - 1) / n of the data, the minimum of any algorithm. Chunks are cut into slices, so that a member forwards the
beginning of a chunk while its end is still arriving. If hosts have several members there are as many rings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from hpn.traffic.collectives.plan import At, Plan
from hpn.traffic.collectives.split import split_twice


def all_reduce(plan: Plan) -> None:
    """Lay out an AllReduce: reduce-scatter, then all-gather; every member ends with the sum."""
    n, rings = plan.members, _rings(plan)
    buffer = plan.buffer(split_twice(plan.size_bytes, n * len(rings), plan.slices, plan.path_mtu))
    for at, ring in enumerate(rings):
        chunks = [_pieces(plan, buffer, at * n + chunk) for chunk in range(n)]
        reduce_round(plan, ring, chunks)
        gather_round(plan, ring, chunks)
        for member in ring:
            for chunk in chunks:
                for piece in chunk:
                    plan.expect(member, piece, range(n))


def reduce_scatter(plan: Plan) -> None:
    """Lay out a ReduceScatter: member i ends with the sum of chunk i."""
    for ring, parts in _parts(plan):
        reduce_round(plan, ring, [parts[member] for member in _one_further(ring)])
        for member in ring:
            for piece in parts[member]:
                plan.expect(member, piece, range(plan.members))


def all_gather(plan: Plan) -> None:
    """Lay out an AllGather: every member ends with the chunks of all."""
    for ring, parts in _parts(plan):
        gather_round(plan, ring, [parts[member] for member in _one_further(ring)])
        for member in ring:
            for owner, part in enumerate(parts):
                for piece in part:
                    plan.expect(member, piece, (owner,))


def broadcast(plan: Plan) -> None:
    """Lay out a broadcast as a chain along the ring: every member ends with the data of member 0."""
    buffer = plan.buffer(split_twice(plan.size_bytes, 1, plan.slices, plan.path_mtu))
    for piece in _pieces(plan, buffer, 0):
        for member in range(plan.members - 1):
            plan.move(member, member + 1, piece)
        for member in range(plan.members):
            plan.expect(member, piece, (0,))


def reduce_round(plan: Plan, ring: Sequence[int], chunks: Sequence[Sequence[At]]) -> None:
    """Sum chunks round a ring of members: the i-th of them ends with the sum of the i + 1-th chunk."""
    for source, target, chunk in _steps(len(ring), 0):
        for piece in chunks[chunk]:
            plan.move(ring[source], ring[target], piece, reduce=True)


def gather_round(plan: Plan, ring: Sequence[int], chunks: Sequence[Sequence[At]]) -> None:
    """Pass chunks round a ring of members; the i-th of them has the i + 1-th chunk."""
    for source, target, chunk in _steps(len(ring), 1):
        for piece in chunks[chunk]:
            plan.move(ring[source], ring[target], piece)


def _steps(n: int, ahead: int) -> Iterator[tuple[int, int, int]]:
    """Yield source, target, chunk: in step k member i sends chunk i + ahead - k."""
    for step in range(n - 1):
        for source in range(n):
            yield source, (source + 1) % n, (source + ahead - step) % n


def _rings(plan: Plan) -> list[list[int]]:
    """Return rings with equal shares of the data, as many as hosts have members: the k-th enters each host at its k-th.

    So every NIC carries its share, as with NCCL's channels; a ring leaves a host by the rail on which it enters the
    next. There is one ring, in the group's order, if hosts differ in their number of members or these are not
    neighbours.
    """
    hosts = [[member for member, _ in run] for _, run in groupby(enumerate(plan.places), lambda each: each[1].host)]
    width = len(hosts[0])
    if len({plan.places[host[0]].host for host in hosts}) < len(hosts) or any(len(host) != width for host in hosts):
        return [list(range(plan.members))]
    return [
        [member for host in hosts for member in host[at:] + host[:at]] for at in range(width if len(hosts) > 1 else 1)
    ]


def _parts(plan: Plan) -> Iterator[tuple[list[int], list[list[At]]]]:
    """Yield each ring with, by member, its part of that member's chunk."""
    rings, slices = _rings(plan), plan.slices
    of_chunk = len(rings) * slices
    buffer = plan.buffer(split_twice(plan.size_bytes, plan.members, of_chunk, plan.path_mtu))
    for at, ring in enumerate(rings):
        firsts = [member * of_chunk + at * slices for member in range(plan.members)]
        yield ring, [[(buffer, index) for index in range(first, first + slices)] for first in firsts]


def _one_further(ring: Sequence[int]) -> list[int]:
    """Return the ring shifted by one, so that the i + 1-th chunk in a round is the i-th member's own."""
    return [*ring[-1:], *ring[:-1]]


def _pieces(plan: Plan, buffer: int, chunk: int) -> list[At]:
    return [(buffer, chunk * plan.slices + at) for at in range(plan.slices)]
