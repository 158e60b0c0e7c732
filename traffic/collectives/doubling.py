"""AllReduce by recursive halving and doubling: log2 n exchanges each way between pairs. PURE.

Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005), Rabenseifner's
algorithm. For a power of two it sends as much as a ring. Otherwise the extra members first hand all their data to a
neighbour, and get the result from it at the end.
"""

from __future__ import annotations

from hpn.traffic.collectives.plan import Plan
from hpn.traffic.collectives.split import split_twice


def all_reduce(plan: Plan) -> None:
    """Lay out an AllReduce: every member ends with the sum."""
    n = plan.members
    power = 1 << n.bit_length() - 1
    extra = n - power
    buffer = plan.buffer(split_twice(plan.size_bytes, power, plan.slices, plan.path_mtu))
    everything = range(power * plan.slices)
    # The first ``extra`` pairs of neighbours count as one member each.
    active = [*range(0, 2 * extra, 2), *range(2 * extra, n)]
    for index in everything:
        for first in active[:extra]:
            plan.move(first + 1, first, (buffer, index), reduce=True)
    _halve(plan, buffer, active)
    _double(plan, buffer, active)
    for index in everything:
        for first in active[:extra]:
            plan.move(first, first + 1, (buffer, index))
        for member in range(n):
            plan.expect(member, (buffer, index), range(n))


def _halve(plan: Plan, buffer: int, active: list[int]) -> None:
    """Exchange halves of the rest, over ever shorter distances: the i-th member ends with the sum of chunk i."""
    distance = len(active) // 2
    while distance:
        for at, member in enumerate(active):
            first = (at ^ distance) & -distance  # the partner keeps the half that begins there
            _move(plan, buffer, member, active[at ^ distance], range(first, first + distance), reduce=True)
        distance //= 2


def _double(plan: Plan, buffer: int, active: list[int]) -> None:
    """Exchange all complete chunks, over ever longer distances."""
    distance = 1
    while distance < len(active):
        for at, member in enumerate(active):
            first = at & -distance
            _move(plan, buffer, member, active[at ^ distance], range(first, first + distance), reduce=False)
        distance *= 2


def _move(plan: Plan, buffer: int, source: int, target: int, chunks: range, *, reduce: bool) -> None:
    for index in range(chunks.start * plan.slices, chunks.stop * plan.slices):
        plan.move(source, target, (buffer, index), reduce=reduce)
