"""Cost of a month of failures, as tables for the terminal. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from rich.table import Table

from hpn.failover.analysis.phrases import plain
from hpn.results.text.tables import table


class Range(Protocol):
    """Range of a figure over simulated months."""

    @property
    def mean(self) -> float:
        """Mean over all months."""

    @property
    def least(self) -> float:
        """Minimum over all months."""

    @property
    def most(self) -> float:
        """Maximum over all months."""


class MonthRow(Protocol):
    """Cost of a month to a job on one network."""

    @property
    def network(self) -> str:
        """Name of the network."""

    @property
    def gpus(self) -> int:
        """GPUs of the job."""

    @property
    def iteration_s(self) -> float:
        """Duration of an iteration without failures."""

    @property
    def one_link_cut(self) -> float:
        """Slowdown of an iteration with one link cut, as a factor."""

    @property
    def crashes(self) -> Range:
        """Crashes of the job in a month."""

    @property
    def lost_gpu_hours(self) -> Range:
        """GPU hours lost to failures."""

    @property
    def lost_share(self) -> float:
        """Share of the month lost to failures."""

    @property
    def lost_samples(self) -> float:
        """Samples lost to failures."""

    @property
    def hashes_gpu_hours(self) -> float:
        """GPU hours lost to hash collisions without failures."""

    @property
    def slower_gpu_hours(self) -> float:
        """GPU hours lost to failures because iterations were slower."""

    @property
    def stalled_gpu_hours(self) -> float:
        """GPU hours lost to failures because the job stalled."""

    @property
    def rolled_back_gpu_hours(self) -> float:
        """GPU hours lost to failures because work since the last checkpoint was repeated."""

    @property
    def down_gpu_hours(self) -> float:
        """GPU hours lost to failures while the job was down."""


class Assumed(Protocol):
    """One assumption of the month."""

    @property
    def name(self) -> str:
        """Name for --set."""

    @property
    def value(self) -> float:
        """Value in ``unit``."""

    @property
    def unit(self) -> str:
        """Unit of the value."""

    @property
    def source(self) -> str:
        """Source of the value."""

    @property
    def changed(self) -> bool:
        """True if the user set it."""


_COLUMNS = (
    *("network", ">iteration", ">link cut", ">crashes", ">lost to failures", ">%", ">samples"),
    *(">slower", ">stalled", ">rolled back", ">down", ">hashes"),
)


def month_table(rows: Sequence[MonthRow], title: str) -> Table:
    """Return a row for each network: GPU hours lost in a month, mean and range, as samples, and by cause."""
    gpus = {row.gpus for row in rows}
    if len(gpus) == 1:
        return table(f"{title}; {gpus.pop():,} GPUs", _COLUMNS, [_cells(row) for row in rows])
    columns = (*_COLUMNS, ">GPUs")
    return table(title, columns, [(*_cells(row), f"{row.gpus:,}") for row in rows])


def assumptions_table(lines: Sequence[Assumed]) -> Table:
    """Return the table of all assumptions and their sources."""
    rows = [(line.name, plain(line.value, 10), line.unit, line.source) for line in lines]
    return table("assumptions (--set NAME=VALUE)", ("name", ">value", "unit", "from"), rows)


def told_changes(lines: Sequence[Assumed]) -> str:
    """Return one line with the assumptions that the user set."""
    given = ", ".join(f"{line.name}={plain(line.value, 10)}" for line in lines if line.changed) or "none"
    return f"assumptions changed: {given}; all of them, with sources: hpn month --assumptions"


def _cells(row: MonthRow) -> tuple[str, ...]:
    crashes, lost = row.crashes, row.lost_gpu_hours
    return (
        row.network,
        f"{row.iteration_s:.2f} s",
        f"x{row.one_link_cut:.3f}" if math.isfinite(row.one_link_cut) else "stops",
        f"{crashes.mean:.1f} ({crashes.least:.0f}-{crashes.most:.0f})",
        f"{lost.mean:,.0f} ({lost.least:,.0f}-{lost.most:,.0f})",
        f"{row.lost_share:.2%}",
        f"{row.lost_samples / 1e6:,.1f} M",
        *(
            f"{hours:,.0f}"
            for hours in (
                *(row.slower_gpu_hours, row.stalled_gpu_hours),
                *(row.rolled_back_gpu_hours, row.down_gpu_hours, row.hashes_gpu_hours),
            )
        ),
    )
