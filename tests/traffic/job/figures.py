"""What tests of programs ask of the spans that ranks timed, apart from what runs make of them. Pure.

What spans say: ``traffic.collectives.program.Span``; what they took: ``Timed`` there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpn.traffic.collectives.locations import Place
from hpn.traffic.collectives.program import COMPUTE, ITERATION, MESSAGE, Program, Send, Span, Timed
from hpn.traffic.collectives.registry import KINDS

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RankTimes:
    """What one rank did: its program and the spans it timed, all of them, in any order."""

    program: Program
    timed: Sequence[Timed]

    def spans(self) -> Iterator[tuple[Span, Timed]]:
        """Each span with what it took."""
        return ((self.program.spans[timed.span], timed) for timed in self.timed)


@dataclass(frozen=True, slots=True)
class IterationTime:
    """An iteration that all ranks have done. ``time_ns``: of the rank that took longest.

    ``exposed_ns``: of the rank for which that is most, how long it communicated and did not compute.
    """

    iteration: int
    begin_ns: int  # of the first rank
    end_ns: int  # of the last
    time_ns: int
    exposed_ns: int


def iterations(ranks: Sequence[RankTimes]) -> list[IterationTime]:
    """The iterations that every rank has done, in order."""
    by_iteration: dict[int, list[Interval]] = {}
    exposed: dict[int, int] = {}
    for rank in ranks:
        for iteration, ns in _exposed(rank).items():
            exposed[iteration] = max(ns, exposed.get(iteration, 0))
        for span, timed in rank.spans():
            if span.kind == ITERATION:
                by_iteration.setdefault(timed.iteration, []).append((timed.begin_ns, timed.end_ns))
    return [
        IterationTime(
            iteration,
            min(begin for begin, _ in took),
            max(end for _, end in took),
            max(end - begin for begin, end in took),
            exposed.get(iteration, 0),
        )
        for iteration, took in sorted(by_iteration.items())
        if len(took) == len(ranks)
    ]


def iterations_per_second(done: Sequence[IterationTime]) -> float | None:
    """From the begin of the first to the end of the last; None when there is none."""
    return len(done) * 1e9 / (done[-1].end_ns - done[0].begin_ns) if done else None


def collective_ns(ranks: Sequence[RankTimes]) -> float:
    """What a collective took, averaged over ranks and repetitions; all of them must be of one kind and size."""
    found = [(span, timed) for rank in ranks for span, timed in rank.spans() if span.kind in KINDS]
    assert len({(span.kind, span.size_bytes, span.ranks) for span, _ in found}) == 1
    return sum(timed.end_ns - timed.begin_ns for _, timed in found) / len(found)


def wrong_blocks(ranks: Sequence[RankTimes]) -> int:
    """Blocks, over all ranks, iterations and spans, that did not hold what they must."""
    return sum(timed.wrong for rank in ranks for timed in rank.timed)


def completion_times(ranks: Sequence[RankTimes]) -> list[int]:
    """Nanoseconds that each message of a pattern took, sorted (collectives' own messages are no spans)."""
    return sorted(
        timed.end_ns - timed.begin_ns for rank in ranks for span, timed in rank.spans() if span.kind == MESSAGE
    )


def percentile(ordered: Sequence[int], percent: float) -> int:
    """The smallest value that at least ``percent`` of all do not exceed (nearest rank); ``ordered`` is not empty."""
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]


def segment_bytes(programs: Sequence[Program], places: Sequence[Place]) -> Mapping[tuple[int, int], int]:
    """Bytes of an iteration that the network carries from one segment to another, or within one."""
    found: dict[tuple[int, int], int] = {}
    for program in programs:
        for op in program.ops:
            if isinstance(op, Send) and op.rail is not None:
                key = (places[program.rank].segment, places[op.peer].segment)
                found[key] = found.get(key, 0) + op.piece.size_bytes
    return found


def _exposed(rank: RankTimes) -> Mapping[int, int]:
    """By iteration: time in collectives or sending messages without computing."""
    talking: dict[int, list[Interval]] = {}
    computing: dict[int, list[Interval]] = {}
    for span, timed in rank.spans():
        if span.kind in KINDS or span.kind == MESSAGE:
            talking.setdefault(timed.iteration, []).append((timed.begin_ns, timed.end_ns))
        elif span.kind == COMPUTE:
            computing.setdefault(timed.iteration, []).append((timed.begin_ns, timed.end_ns))
    return {
        iteration: _length([*spans, *computing.get(iteration, ())]) - _length(computing.get(iteration, ()))
        for iteration, spans in talking.items()
    }


def _length(intervals: Iterable[Interval]) -> int:
    """Of the union."""
    total, covered = 0, 0
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, covered))
        covered = max(covered, end)
    return total
