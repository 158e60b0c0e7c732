"""Exposed communication: the part of an iteration in which a rank waits for others without computing.

Changes when the definition of communication or of computing does. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from hpn.failover.analysis.job import Iteration, JobFacts, SpanFact
from hpn.traffic.collectives.program import COMPUTE, MESSAGE
from hpn.traffic.collectives.registry import KINDS
from hpn.traffic.streams.columns import Records

_Interval = tuple[int, int]


def exposed_ms(facts: JobFacts, spans: Records, iterations: Sequence[Iteration]) -> float:
    """Return the mean over these iterations of the rank with the most exposed time, ms; 0 without any computing."""
    if not any(fact.kind == COMPUTE for of in facts.spans.values() for fact in of) or not iterations:
        return 0.0
    most = dict.fromkeys((each.number for each in iterations), 0)
    for rank, of in facts.spans.items():
        for iteration, ns in _of_rank(of, spans[spans["rank"] == rank]):
            if iteration in most:
                most[iteration] = max(most[iteration], ns)
    return sum(most.values()) / len(most) / 1e6


def _of_rank(facts: Sequence[SpanFact], spans: Records) -> Iterator[tuple[int, int]]:
    """Yield each iteration of one rank with its exposed communication, ns."""
    spans = spans[np.argsort(spans["iteration"], kind="stable")]
    numbers, starts = np.unique(spans["iteration"], return_index=True)
    for number, part in zip(numbers.tolist(), np.split(spans, starts[1:]), strict=True):
        rows = part[["span", "begin_ns", "end_ns"]].tolist()
        busy = [(begin, end) for at, begin, end in rows if facts[at].kind == COMPUTE]
        talking = [(begin, end) for at, begin, end in rows if facts[at].kind in KINDS or facts[at].kind == MESSAGE]
        yield number, _length([*busy, *talking]) - _length(busy)


def _length(intervals: Iterable[_Interval]) -> int:
    """Return the length of the union of these intervals."""
    total = covered = 0
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, covered))
        covered = max(covered, end)
    return total
