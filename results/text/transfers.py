"""Table of transfers between edges: their number, those with missing packets, and their durations."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.table import Table

from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.transfers import Fate, Transfer, Transfers
from hpn.results.text.tables import table


def transfers_table(metrics: DrillMetrics, transfers: Transfers) -> Table:
    """Return a row for the time before the first edge, and one for each edge."""
    rows = [_row("before", list(transfers.at(None)))]
    rows += [_row(result.edge.label, list(transfers.at(at))) for at, result in enumerate(metrics.edges)]
    columns = ("edge", ">transfers", ">complete", ">incomplete", ">packets missing", ">median ms", ">longest ms")
    return table("transfers: first packet sent to last packet received", columns, rows)


def _row(label: str, found: Sequence[Transfer]) -> Sequence[str]:
    times = [each.ms for each in found if each.ms is not None]
    fates = [each.fate for each in found]
    return (
        label,
        str(len(found)),
        str(fates.count(Fate.COMPLETE)),
        str(fates.count(Fate.INCOMPLETE)),
        str(sum(each.lost for each in found)),
        f"{median(times):.2f}" if times else "-",
        f"{max(times):.2f}" if times else "-",
    )
