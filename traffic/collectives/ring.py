"""Collectives round a ring: every member sends to the next and receives from the one before. PURE.

Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009): each member sends
2 (n - 1) / n of the data, which no algorithm can undercut. Chunks are cut into slices, so that a member passes on the
begin of a chunk while its end is still coming.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traffic.collectives.plan import Plan
from traffic.collectives.split import split_twice


def all_reduce(plan: Plan) -> None:
    """Everyone ends with the sum: reduce-scatter, then all-gather."""
    n = plan.members
    buffer = plan.buffer(split_twice(plan.size_bytes, n, plan.slices, plan.path_mtu))
    ring, chunks = range(n), [_pieces(plan, buffer, chunk) for chunk in range(n)]
    reduce_round(plan, ring, chunks)
    gather_round(plan, ring, chunks)
    for member in range(n):
        for chunk in chunks:
            for piece in chunk:
                plan.expect(member, piece, range(n))


def reduce_scatter(plan: Plan) -> None:
    """Member i ends with the sum of chunk i."""
    n = plan.members
    buffer = plan.buffer(split_twice(plan.size_bytes, n, plan.slices, plan.path_mtu))
    chunks = [_pieces(plan, buffer, chunk) for chunk in range(n)]
    # reduce_round leaves chunk i + 1 with member i.
    reduce_round(plan, range(n), [chunks[(i - 1) % n] for i in range(n)])
    for member, chunk in enumerate(chunks):
        for piece in chunk:
            plan.expect(member, piece, range(n))


def all_gather(plan: Plan) -> None:
    """Everyone ends with everyone's chunk."""
    n = plan.members
    buffer = plan.buffer(split_twice(plan.size_bytes, n, plan.slices, plan.path_mtu))
    chunks = [_pieces(plan, buffer, chunk) for chunk in range(n)]
    # gather_round begins with chunk i + 1 at member i.
    gather_round(plan, range(n), [chunks[(i - 1) % n] for i in range(n)])
    for member in range(n):
        for owner, chunk in enumerate(chunks):
            for piece in chunk:
                plan.expect(member, piece, (owner,))


def broadcast(plan: Plan) -> None:
    """Everyone ends with what member 0 has: a chain along the ring."""
    buffer = plan.buffer(split_twice(plan.size_bytes, 1, plan.slices, plan.path_mtu))
    for piece in _pieces(plan, buffer, 0):
        for member in range(plan.members - 1):
            plan.move(member, member + 1, piece)
        for member in range(plan.members):
            plan.expect(member, piece, (0,))


def reduce_round(plan: Plan, ring: Sequence[int], chunks: Sequence[Sequence[tuple[int, int]]]) -> None:
    """Sum chunks round a ring of members: the i-th of them ends with the sum of the i + 1-th chunk."""
    for source, target, chunk in _steps(len(ring), 0):
        for piece in chunks[chunk]:
            plan.move(ring[source], ring[target], piece, reduce=True)


def gather_round(plan: Plan, ring: Sequence[int], chunks: Sequence[Sequence[tuple[int, int]]]) -> None:
    """Pass chunks round a ring of members; the i-th of them has the i + 1-th chunk."""
    for source, target, chunk in _steps(len(ring), 1):
        for piece in chunks[chunk]:
            plan.move(ring[source], ring[target], piece)


def _steps(n: int, ahead: int) -> Iterator[tuple[int, int, int]]:
    """Source, target, chunk: in step k member i sends chunk i + ahead - k."""
    for step in range(n - 1):
        for source in range(n):
            yield source, (source + 1) % n, (source + ahead - step) % n


def _pieces(plan: Plan, buffer: int, chunk: int) -> list[tuple[int, int]]:
    return [(buffer, chunk * plan.slices + at) for at in range(plan.slices)]
