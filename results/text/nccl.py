"""Collectives of a run as nccl-tests prints them. Pure.

Changes when nccl-tests' columns do (src/common.cu, with times of one kind only: nothing here is in place). Where a time
is the mean over repetitions of the slowest rank's, as with its option ``-a 3``, it is the one that drills judge too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from pydantic import JsonValue

from hpn.failover.analysis.job import SpanResult
from hpn.traffic.collectives.registry import KINDS

_WORD_BYTES = 8  # the sums are of 64-bit words
_HEAD = (
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong",
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A size of a kind of collective over so many ranks; ``wrong``: blocks, over all ranks and ``times``.

    Bandwidths in gigabytes a second, as nccl-tests has them: of the collective's size, and what the best algorithm's
    busiest link would carry.
    """

    kind: str
    ranks: int
    size_bytes: int
    count: int
    type: str
    redop: str
    root: int
    times: int
    time_us: float
    algbw_gbps: float
    busbw_gbps: float
    wrong: int


def rows(spans: Iterable[SpanResult]) -> list[Row]:
    """One for each size, by kind and number of ranks; without computing, and without messages of patterns."""

    def key(span: SpanResult) -> tuple[str, int, int]:
        return span.kind, span.ranks, span.size_bytes

    found = sorted((span for span in spans if span.kind in KINDS), key=key)
    return [_row(list(alike)) for _, alike in groupby(found, key)]


def lines(found: Sequence[Row]) -> Iterator[str]:
    """The rows with two more digits of bandwidth than nccl-tests has: links of a lab are slow."""
    for (kind, ranks), of in groupby(found, lambda row: (row.kind, row.ranks)):
        yield f"# {kind} over {ranks} ranks; time: mean of the slowest rank's (-a 3), each repetition checked"
        yield from _HEAD
        yield from map(_line, of)
    if found:
        wrong = sum(row.wrong for row in found)
        yield f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"
        yield f"# Avg bus bandwidth    : {sum(row.busbw_gbps for row in found) / len(found):.6g}"


def json_rows(found: Sequence[Row]) -> list[dict[str, JsonValue]]:
    """The rows as plain values."""
    return [asdict(row) for row in found]


def _row(alike: Sequence[SpanResult]) -> Row:
    """Of spans that differ in their label only."""
    span, kind, times = alike[0], KINDS[alike[0].kind], sum(each.count for each in alike)
    ms = sum(each.mean_ms * each.count for each in alike) / times
    algbw = span.size_bytes / (ms * 1e6) if ms else 0.0
    return Row(
        kind=span.kind,
        ranks=span.ranks,
        size_bytes=span.size_bytes,
        count=-(-span.size_bytes // _WORD_BYTES),
        type="uint64",
        redop=kind.redop,
        root=kind.root,
        times=times,
        time_us=ms * 1e3,
        algbw_gbps=algbw,
        busbw_gbps=algbw * kind.bus_factor(span.ranks),
        wrong=sum(each.wrong for each in alike),
    )


def _line(row: Row) -> str:
    left = f"{row.size_bytes:12d}  {row.count:12d}  {row.type:>8}  {row.redop:>6}  {row.root:6d}"
    return f"{left}  {_us(row.time_us):>7} {row.algbw_gbps:7.4f} {row.busbw_gbps:7.4f} {row.wrong:7d}"


def _us(us: float) -> str:
    """Microseconds in five digits, as far as they do."""
    return f"{us:.2f}" if us < 1000 else f"{us:.1f}" if us < 10_000 else f"{us:.0f}"
