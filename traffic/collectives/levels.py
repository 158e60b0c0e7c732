"""AllReduce in levels: along one after the other the data is reduced, then gathered along them in reverse. PURE.

Members have a position along each level, and those that differ along one level only are a line. A line reduces what its
members hold to one share each, so a level of n leaves 1 / n of the data to the next (Cho et al., BlueConnect, MLSys
2019). Each member sends 2 (n - 1) / n of the data over all levels, with n members: as much as round one ring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hpn.traffic.collectives import ring
from hpn.traffic.collectives.plan import At, Plan
from hpn.traffic.collectives.split import split_twice

Round = Callable[[Plan, Sequence[int], Sequence[Sequence[At]]], None]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A line's way to reduce and gather. In between its i-th member has the sum of the ``i + ahead``-th share."""

    reduce: Round
    gather: Round
    ahead: int


@dataclass(frozen=True, slots=True)
class Level:
    """The position of each member along a level, counted from 0, and how its lines exchange shares."""

    positions: Sequence[int]
    exchange: Exchange

    @property
    def size(self) -> int:
        """Number of members of a line."""
        return max(self.positions) + 1


def all_reduce(plan: Plan, ways: Sequence[Sequence[Level]]) -> None:
    """Lay out an AllReduce; each of ``ways`` takes an equal part of the data through its levels.

    No two members have the same positions along all levels of a way, and its sizes multiply to their number.
    """
    n = plan.members
    buffer = plan.buffer(split_twice(plan.size_bytes, n * len(ways), plan.slices, plan.path_mtu))
    chunks = [[(buffer, chunk * plan.slices + at) for at in range(plan.slices)] for chunk in range(n * len(ways))]
    for at, way in enumerate(ways):
        _one_way(plan, way, chunks[at * n : (at + 1) * n])
    for member in range(n):
        for chunk in chunks:
            for piece in chunk:
                plan.expect(member, piece, range(n))


def _one_way(plan: Plan, way: Sequence[Level], chunks: Sequence[Sequence[At]]) -> None:
    lines = [(level.exchange, _lines(way, at, chunks)) for at, level in enumerate(way)]
    for exchange, of_level in lines:
        for members, shares in of_level:
            exchange.reduce(plan, members, shares)
    for exchange, of_level in reversed(lines):
        for members, shares in of_level:
            exchange.gather(plan, members, shares)


def _lines(way: Sequence[Level], at: int, chunks: Sequence[Sequence[At]]) -> list[tuple[list[int], list[list[At]]]]:
    """Return the lines along a level: members by position, and the shares into which they part what they hold."""
    found: dict[tuple[int, ...], dict[int, int]] = {}
    for member, position in enumerate(way[at].positions):
        others = tuple(level.positions[member] for level in way if level is not way[at])
        found.setdefault(others, {})[position] = member
    return [([line[each] for each in sorted(line)], _shares(way, at, line[0], chunks)) for line in found.values()]


def _shares(way: Sequence[Level], at: int, member: int, chunks: Sequence[Sequence[At]]) -> list[list[At]]:
    """Return the shares of a line: the levels before have left its members these chunks."""
    first, many = 0, len(chunks)
    for level in way[:at]:
        many //= level.size
        first += (level.positions[member] + level.exchange.ahead) % level.size * many
    many //= way[at].size
    begins = range(first, first + many * way[at].size, many)
    return [[piece for chunk in chunks[begin : begin + many] for piece in chunk] for begin in begins]


def _to_each(plan: Plan, members: Sequence[int], shares: Sequence[Sequence[At]]) -> None:
    for source, to in _pairs(len(members)):
        for piece in shares[to]:
            plan.move(members[source], members[to], piece, reduce=True)


def _from_each(plan: Plan, members: Sequence[int], shares: Sequence[Sequence[At]]) -> None:
    for source, to in _pairs(len(members)):
        for piece in shares[source]:
            plan.move(members[source], members[to], piece)


def _pairs(n: int) -> list[tuple[int, int]]:
    """Return each source with each target: everyone sends to the next, then to the one after it, ..."""
    return [(source, (source + ahead) % n) for ahead in range(1, n) for source in range(n)]


RING = Exchange(ring.reduce_round, ring.gather_round, ahead=1)
"""Shares go round a ring."""

DIRECT = Exchange(_to_each, _from_each, ahead=0)
"""Everyone sends to everyone at once."""
