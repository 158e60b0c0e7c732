"""Activity of each rank of a job around the first fault: a row per rank, a bar per span. Pure.

Changes when the timeline of ranks shows something else. The complete run would be a grey block, so it shows only the
iterations around the first edge, or the first ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpn.failover.analysis.job import SpanTime
from hpn.results.page.axis import Linear, Tick

_MOST_RANKS = 16
_MOST_BARS = 1500
_BEFORE, _ITERATIONS = 1, 4  # iterations before the one that the edge hit, and in total


UNFINISHED = "not ended"
_LONGEST_STILL = 3
"""Maximum length of a stall in the drawing, as a multiple of everything before it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A span; ``kind``: the number of its fill."""

    left_pct: float
    width_pct: float
    kind: int
    text: str


@dataclass(frozen=True, slots=True)
class RankRow:
    """One rank."""

    rank: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class RankTimeline:
    """Timeline of ranks. ``kinds``: meanings of the fills, numbered from 1; ``ticks`` in s since the start."""

    rows: tuple[RankRow, ...]
    kinds: tuple[str, ...]
    ticks: tuple[Tick, ...]
    edge_pct: float | None
    left_out: int  # ranks


def rank_timeline(
    spans: Sequence[SpanTime], begin_ns: int, edge_ns: int | None, until_ns: int | None = None
) -> RankTimeline | None:
    """Return the timeline; None if ranks recorded only ends of iterations.

    ``until_ns``: time of the job's death or end of the record; ranks that ended nothing more until then were stalled.
    """
    parts = [span for span in spans if span.kind != "iteration" and span.end_ns >= span.begin_ns]
    if not parts:
        return None
    met = _met(spans, edge_ns)
    wanted = range(max(met - _BEFORE, 0), max(met - _BEFORE, 0) + _ITERATIONS)
    shown = [span for span in parts if span.iteration in wanted]
    ranks = sorted({span.rank for span in shown})
    kept = ranks[:_MOST_RANKS]
    shown = [span for span in shown if span.rank in kept][:_MOST_BARS]
    if not shown:
        return None
    if edge_ns is not None and until_ns is not None:
        shown += _unfinished(spans, shown, wanted.stop, until_ns)
    first, last = min(span.begin_ns for span in shown), max(span.end_ns for span in shown)
    axis = Linear((first - begin_ns) / 1e9, max((last - begin_ns) / 1e9, (first - begin_ns) / 1e9 + 1e-6))
    kinds = tuple(sorted({span.kind for span in shown}))
    rows = tuple(
        RankRow(rank, tuple(_bar(span, axis, begin_ns, kinds) for span in shown if span.rank == rank)) for rank in kept
    )
    inside = edge_ns is not None and first <= edge_ns <= last
    edge = axis.at((edge_ns - begin_ns) / 1e9) if edge_ns is not None and inside else None
    return RankTimeline(rows, kinds, axis.ticks(7), edge, len(ranks) - len(kept))


def _met(spans: Sequence[SpanTime], edge_ns: int | None) -> int:
    """Return the iteration during which the edge came; without an edge the first one."""
    first = min(span.iteration for span in spans)
    if edge_ns is None:
        return first
    begun = [span.iteration for span in spans if span.begin_ns <= edge_ns]
    return max(begun, default=first)


def _unfinished(spans: Sequence[SpanTime], shown: Sequence[SpanTime], stop: int, until_ns: int) -> Sequence[SpanTime]:
    """Return the unfinished span of each rank when the job stalled, shortened so that the others stay readable."""
    last: dict[int, SpanTime] = {}
    for span in spans:
        if span.rank not in last or span.end_ns >= last[span.rank].end_ns:
            last[span.rank] = span
    first, end = min(span.begin_ns for span in shown), max(span.end_ns for span in shown)
    until_ns = min(until_ns, end + _LONGEST_STILL * (end - first))
    return [
        SpanTime(rank, found.iteration + (found.kind == "iteration"), UNFINISHED, UNFINISHED, found.end_ns, until_ns, 0)
        for rank in sorted({span.rank for span in shown})
        if (found := last[rank]).iteration < stop and found.end_ns < until_ns
    ]


def _bar(span: SpanTime, axis: Linear, begin_ns: int, kinds: Sequence[str]) -> Bar:
    left, right = axis.at((span.begin_ns - begin_ns) / 1e9), axis.at((span.end_ns - begin_ns) / 1e9)
    text = f"{span.label}, iteration {span.iteration}: {(span.end_ns - span.begin_ns) / 1e6:.3f} ms"
    return Bar(left, right - left, kinds.index(span.kind) + 1, text)
