"""Collectives of a run in the output format of nccl-tests. Pure.

Changes when nccl-tests' columns do (src/common.cu, with only one kind of time, since nothing here runs in place). The
time is the mean over repetitions of the slowest rank's, as with its option ``-a 3``. Drills check the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from pydantic import JsonValue

from hpn.failover.analysis.job import SpanResult
from hpn.traffic.collectives.registry import KINDS

_WORD_BYTES = 8  # collectives sum 64-bit words
_HEAD = (
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong",
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)",
)


@dataclass(frozen=True, slots=True)
class NcclRow:
    """One size of one kind of collective over a number of ranks. ``wrong``: blocks, over all ranks and ``times``.

    Bandwidths are in gigabytes a second, as in nccl-tests: that of the collective's size, and that of the busiest link
    under the best algorithm.
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


def rows(spans: Iterable[SpanResult]) -> list[NcclRow]:
    """Return a row for each size, by kind and number of ranks; computing and messages of patterns are left out."""

    def key(span: SpanResult) -> tuple[str, int, int]:
        return span.kind, span.ranks, span.size_bytes

    found = sorted((span for span in spans if span.kind in KINDS), key=key)
    return [_row(list(alike)) for _, alike in groupby(found, key)]


def lines(found: Sequence[NcclRow]) -> Iterator[str]:
    """Yield the rows in text, with two more digits of bandwidth than nccl-tests because links of a lab are slow."""
    for (kind, ranks), of in groupby(found, lambda row: (row.kind, row.ranks)):
        yield f"# {kind} over {ranks} ranks; time: mean of the slowest rank's (-a 3), each repetition checked"
        yield from _HEAD
        yield from map(_line, of)
    if found:
        wrong = sum(row.wrong for row in found)
        yield f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"
        yield f"# Avg bus bandwidth    : {sum(row.busbw_gbps for row in found) / len(found):.6g}"


def json_rows(found: Sequence[NcclRow]) -> list[dict[str, JsonValue]]:
    """Return the rows as plain values."""
    return [asdict(row) for row in found]


def _row(alike: Sequence[SpanResult]) -> NcclRow:
    """Return the row of spans that differ only in their label."""
    span, kind, times = alike[0], KINDS[alike[0].kind], sum(each.count for each in alike)
    ms = sum(each.mean_ms * each.count for each in alike) / times
    algbw = span.size_bytes / (ms * 1e6) if ms else 0.0
    return NcclRow(
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


def _line(row: NcclRow) -> str:
    left = f"{row.size_bytes:12d}  {row.count:12d}  {row.type:>8}  {row.redop:>6}  {row.root:6d}"
    return f"{left}  {_us(row.time_us):>7} {row.algbw_gbps:7.4f} {row.busbw_gbps:7.4f} {row.wrong:7d}"


def _us(us: float) -> str:
    """Return microseconds in at most five digits."""
    return f"{us:.2f}" if us < 1000 else f"{us:.1f}" if us < 10_000 else f"{us:.0f}"
