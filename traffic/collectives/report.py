"""Collectives as nccl-tests prints them: size, time, algorithm and bus bandwidth, wrong values. PURE text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traffic.collectives.registry import KINDS

_WORD_BYTES = 8  # the sums are of 64-bit words
_HEAD = (
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong",
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)",
)


@dataclass(frozen=True, slots=True)
class Row:
    """What one collective took; ``wrong``: blocks, over all ranks and repetitions, that did not hold what they must."""

    kind: str
    size_bytes: int
    ranks: int
    time_ns: float
    wrong: int

    @property
    def algbw_gbps(self) -> float:
        """Gigabytes a second of the collective's size."""
        return self.size_bytes / self.time_ns

    @property
    def busbw_gbps(self) -> float:
        """Gigabytes a second that the best algorithm's busiest link would carry: comparable between group sizes."""
        return self.algbw_gbps * KINDS[self.kind].bus_factor(self.ranks)


def table(rows: Sequence[Row]) -> str:
    """The rows as nccl-tests lays them out, with two more digits of bandwidth: links of a lab are slow."""
    lines = [*_HEAD, *(_line(row) for row in rows)]
    if rows:
        wrong = sum(row.wrong for row in rows)
        lines.append(f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}")
        lines.append(f"# Avg bus bandwidth    : {sum(row.busbw_gbps for row in rows) / len(rows):.6g}")
    return "\n".join(lines)


def _line(row: Row) -> str:
    kind = KINDS[row.kind]
    count = -(-row.size_bytes // _WORD_BYTES)
    left = f"{row.size_bytes:12d}  {count:12d}  {'uint64':>8}  {kind.redop:>6}  {kind.root:6d}"
    return f"{left}  {_us(row.time_ns):>7} {row.algbw_gbps:7.4f} {row.busbw_gbps:7.4f} {row.wrong:7d}"


def _us(ns: float) -> str:
    """Microseconds in five digits, as far as they do."""
    us = ns / 1000
    return f"{us:.2f}" if us < 1000 else f"{us:.1f}" if us < 10_000 else f"{us:.0f}"
