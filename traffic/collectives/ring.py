"""Collectives round a ring: every member sends to the next and receives from the one before. PURE.

Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009): each member sends
2 (n - 1) / n of the data, which no algorithm can undercut. Chunks are cut into slices, so that a member passes on the
begin of a chunk while its end is still coming. Where hosts have several members there are as many rings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from hpn.traffic.collectives.plan import At, Plan
from hpn.traffic.collectives.split import split_twice


def all_reduce(plan: Plan) -> None:
    """Everyone ends with the sum: reduce-scatter, then all-gather."""
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
    """Member i ends with the sum of chunk i."""
    for ring, parts in _parts(plan):
        reduce_round(plan, ring, [parts[member] for member in _one_further(ring)])
        for member in ring:
            for piece in parts[member]:
                plan.expect(member, piece, range(plan.members))


def all_gather(plan: Plan) -> None:
    """Everyone ends with everyone's chunk."""
    for ring, parts in _parts(plan):
        gather_round(plan, ring, [parts[member] for member in _one_further(ring)])
        for member in ring:
            for owner, part in enumerate(parts):
                for piece in part:
                    plan.expect(member, piece, (owner,))


def broadcast(plan: Plan) -> None:
    """Everyone ends with what member 0 has: a chain along the ring."""
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
    """Source, target, chunk: in step k member i sends chunk i + ahead - k."""
    for step in range(n - 1):
        for source in range(n):
            yield source, (source + 1) % n, (source + ahead - step) % n


def _rings(plan: Plan) -> list[list[int]]:
    """Rings with a share of the data each, as many as hosts have members: the k-th enters every host at its k-th.

    So every NIC carries its share, as NCCL's channels see to; a ring leaves a host by the rail on which it enters the
    next. One ring in the group's order where hosts have different numbers of members, or these are not neighbours.
    """
    hosts = [[member for member, _ in run] for _, run in groupby(enumerate(plan.places), lambda each: each[1].host)]
    width = len(hosts[0])
    if len({plan.places[host[0]].host for host in hosts}) < len(hosts) or any(len(host) != width for host in hosts):
        return [list(range(plan.members))]
    return [
        [member for host in hosts for member in host[at:] + host[:at]] for at in range(width if len(hosts) > 1 else 1)
    ]


def _parts(plan: Plan) -> Iterator[tuple[list[int], list[list[At]]]]:
    """Each ring, and by member its part of that member's chunk."""
    rings, slices = _rings(plan), plan.slices
    of_chunk = len(rings) * slices
    buffer = plan.buffer(split_twice(plan.size_bytes, plan.members, of_chunk, plan.path_mtu))
    for at, ring in enumerate(rings):
        firsts = [member * of_chunk + at * slices for member in range(plan.members)]
        yield ring, [[(buffer, index) for index in range(first, first + slices)] for first in firsts]


def _one_further(ring: Sequence[int]) -> list[int]:
    """A round ends, or begins, with the i-th member having the i + 1-th chunk: here, its own."""
    return [*ring[-1:], *ring[:-1]]


def _pieces(plan: Plan, buffer: int, chunk: int) -> list[At]:
    return [(buffer, chunk * plan.slices + at) for at in range(plan.slices)]
