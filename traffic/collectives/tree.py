"""Binary tree collectives: fewer steps than a ring, for small data. PURE.

AllReduce runs along two trees, with half of the data each. Inner members of one tree are leaves of the other (all but
one member), so that every NIC is used in both directions. The algorithm is from Sanders, Speck, Traeff, "Two-tree
algorithms for full bandwidth broadcast, reduction and scan" (2009), as in NCCL's double binary tree. Data goes in
slices, each forwarded on arrival.
"""

from __future__ import annotations

from collections.abc import Sequence

from hpn.traffic.collectives.plan import Plan
from hpn.traffic.collectives.split import split_twice


def all_reduce(plan: Plan) -> None:
    """Lay out an AllReduce: up each of two trees, and down again; every member ends with the sum."""
    n = plan.members
    buffer = plan.buffer(split_twice(plan.size_bytes, 2, plan.slices, plan.path_mtu))
    for at in range(plan.slices):
        for half, parents in enumerate((_parents(n), _other_parents(n))):
            piece = (buffer, half * plan.slices + at)
            down = _from_the_root(parents)
            for member in reversed(down):
                plan.move(member, parents[member], piece, reduce=True)
            for member in down:
                plan.move(parents[member], member, piece)
            for member in range(n):
                plan.expect(member, piece, range(n))


def broadcast(plan: Plan) -> None:
    """Lay out a broadcast: every member ends with the data of member 0, the root of one binary tree."""
    buffer = plan.buffer(split_twice(plan.size_bytes, 1, plan.slices, plan.path_mtu))
    parents = _parents(plan.members)
    for at in range(plan.slices):
        for member in _from_the_root(parents):
            plan.move(parents[member], member, (buffer, at))
        for member in range(plan.members):
            plan.expect(member, (buffer, at), (0,))


def _parents(n: int) -> list[int]:
    """Return each member's parent in a binary tree with odd leaves; the root, 0, has one child and is its own parent.

    A member's height is its number of trailing zero bits; its children are half of its lowest bit to both sides.
    """
    parents = [0]
    for member in range(1, n):
        low = member & -member
        above = (member ^ low) | low << 1
        parents.append(above if above < n else member ^ low)
    return parents


def _other_parents(n: int) -> list[int]:
    """Return the same tree with other leaves: mirrored for an even ``n``, else shifted by one member."""
    place = [n - 1 - member if n % 2 == 0 else (member + 1) % n for member in range(n)]
    parents = [0] * n
    for member, parent in enumerate(_parents(n)):
        parents[place[member]] = place[parent]
    return parents


def _from_the_root(parents: Sequence[int]) -> list[int]:
    """Return all members but the root, each after its parent, level by level."""
    children: list[list[int]] = [[] for _ in parents]
    order = []
    for member, parent in enumerate(parents):
        if member == parent:
            order.append(member)
        else:
            children[parent].append(member)
    for member in order:
        order += children[member]
    return order[1:]
