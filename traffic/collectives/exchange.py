"""Collectives with separate data for each pair of members: all-to-all, and send/receive. PURE."""

from __future__ import annotations

from collections.abc import Iterator

from hpn.traffic.collectives.plan import At, Plan
from hpn.traffic.collectives.split import split, split_twice


def pairwise(plan: Plan) -> None:
    """Lay out an all-to-all in n - 1 steps: in step k each member sends to the k-th after it, then waits for the step.

    So each NIC has one sender at a time, as long as all members keep step.
    """
    over: list[list[int]] = [[] for _ in range(plan.members)]  # by member: what ends its last step
    for step in _steps(plan):
        ends: list[list[int]] = [[] for _ in over]
        for source, target, piece in step:
            move = plan.move(source, target, piece, wait=over[source])
            if move is not None:
                ends[source].append(move.send)
                ends[target].append(move.receive)
        over = [new or old for new, old in zip(ends, over, strict=True)]


def direct(plan: Plan) -> None:
    """Lay out an all-to-all with all messages at once, as NCCL's grouped sends and receives."""
    for step in _steps(plan):
        for source, target, piece in step:
            plan.move(source, target, piece)


def shift(plan: Plan) -> None:
    """Lay out a shift: each member sends all its data to the next, as nccl-tests' sendrecv does."""
    n = plan.members
    buffer = plan.buffer(split(plan.size_bytes, plan.slices, plan.path_mtu) * n)
    for source in range(n):
        for at in range(plan.slices):
            piece = (buffer, source * plan.slices + at)
            plan.move(source, (source + 1) % n, piece)
            plan.expect((source + 1) % n, piece, (source,))


def _steps(plan: Plan) -> Iterator[list[tuple[int, int, At]]]:
    """Yield each step's sources, targets and pieces; the buffer has a row for each source, a chunk for each target."""
    n, slices = plan.members, plan.slices
    buffer = plan.buffer(split_twice(plan.size_bytes, n, slices, plan.path_mtu) * n)
    for ahead in range(1, n):
        step = []
        for source in range(n):
            target = (source + ahead) % n
            for at in range(slices):
                piece = (buffer, (source * n + target) * slices + at)
                step.append((source, target, piece))
                plan.expect(target, piece, (source,))
        yield step
