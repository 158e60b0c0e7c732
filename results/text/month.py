"""What a month costs, as tables for the terminal. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from rich.table import Table

from hpn.failover.analysis.words import plain
from hpn.results.text.tables import table


class Range(Protocol):
    """A figure over months."""

    @property
    def mean(self) -> float:
        """Over all."""

    @property
    def least(self) -> float:
        """Of all."""

    @property
    def most(self) -> float:
        """Of all."""


class Row(Protocol):
    """What a month takes from a job on one network."""

    @property
    def network(self) -> str:
        """Its name."""

    @property
    def iteration_s(self) -> float:
        """When all is well."""

    @property
    def one_link_cut(self) -> float:
        """Times as long an iteration takes then."""

    @property
    def crashes(self) -> Range:
        """Of the job."""

    @property
    def lost_gpu_hours(self) -> Range:
        """To failures."""

    @property
    def lost_share(self) -> float:
        """Of the month, to failures."""

    @property
    def lost_samples(self) -> float:
        """To failures."""

    @property
    def hashes_gpu_hours(self) -> float:
        """When all is well."""

    @property
    def slower_gpu_hours(self) -> float:
        """Of what failures take."""

    @property
    def stalled_gpu_hours(self) -> float:
        """Of what failures take."""

    @property
    def rolled_back_gpu_hours(self) -> float:
        """Of what failures take."""

    @property
    def down_gpu_hours(self) -> float:
        """Of what failures take."""


class Assumed(Protocol):
    """One number that the month takes."""

    @property
    def name(self) -> str:
        """For --set."""

    @property
    def value(self) -> float:
        """In ``unit``."""

    @property
    def unit(self) -> str:
        """What it counts."""

    @property
    def source(self) -> str:
        """Where it is from."""

    @property
    def changed(self) -> bool:
        """Whether the user gave it."""


_COLUMNS = (
    *("network", ">iteration", ">link cut", ">crashes", ">lost to failures", ">%", ">samples", ">slower", ">stalled"),
    *(">rolled back", ">down", ">hashes"),
)


def month_table(rows: Sequence[Row], title: str) -> Table:
    """A row for each network: lost GPU hours of a month, mean and range, as samples, and by reason."""
    return table(title, _COLUMNS, [_cells(row) for row in rows])


def assumptions_table(lines: Sequence[Assumed]) -> Table:
    """Every number that was assumed, and where it is from."""
    rows = [(line.name, plain(line.value, 10), line.unit, line.source) for line in lines]
    return table("assumptions (--set NAME=VALUE)", ("name", ">value", "unit", "from"), rows)


def told_changes(lines: Sequence[Assumed]) -> str:
    """Which of them the user gave, in a line."""
    given = ", ".join(f"{line.name}={plain(line.value, 10)}" for line in lines if line.changed) or "none"
    return f"assumptions changed: {given}; all of them, with sources: hpn month --assumptions"


def _cells(row: Row) -> tuple[str, ...]:
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
