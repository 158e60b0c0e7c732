"""Table of transfers, for flows that send by schedule. Pure.

Changes when a transfer gets another field.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.results.tables.edges import EDGE, edge_cells
from hpn.results.tables.table import Column, Kind, Row, RunFacts, Table

_COLUMNS = (
    *EDGE,
    Column("flow", Kind.COUNT, "number of the flow"),
    Column("name", Kind.TEXT, "its name"),
    Column("number", Kind.COUNT, "number among the flow's transfers, from 0"),
    Column("began_at_ns", Kind.COUNT, "when it began, CLOCK_MONOTONIC", "ns"),
    Column("packets", Kind.COUNT, "packets that it has"),
    Column("sent", Kind.COUNT, "packets of these that were sent"),
    Column("received", Kind.COUNT, "packets of these that arrived unharmed, each once"),
    Column("lost", Kind.COUNT, "packets of these that did not arrive, or arrived harmed"),
    Column("fate", Kind.TEXT, "complete; incomplete: packets are missing; unfinished: the traffic ended in it"),
    Column("ms", Kind.NUMBER, "first packet sent to last packet received; empty where it is not complete", "ms"),
    Column("low_ms", Kind.NUMBER, "the least that it may have been", "ms"),
    Column("high_ms", Kind.NUMBER, "the most that it may have been", "ms"),
    Column("sender_late_ms", Kind.NUMBER, "how late the last packet was sent by plan; negative: too early", "ms"),
)
_AS_THEY_ARE = (
    *("flow", "number", "began_at_ns", "packets", "sent", "received", "lost"),
    *("ms", "low_ms", "high_ms", "sender_late_ms"),
)


def _rows(run: RunFacts) -> Iterator[Row]:
    if run.metrics is None or run.metrics.transfers is None:
        return
    names = {flow.flow: flow.name for flow in run.metrics.flows}
    for each in run.metrics.transfers.transfers:
        yield {
            **edge_cells(None if each.edge is None else run.metrics.edges[each.edge]),
            "name": names[each.flow],
            "fate": each.fate.value,
            **{name: getattr(each, name) for name in _AS_THEY_ARE},
        }


TRANSFERS = Table(
    "transfers",
    "one row for each transfer and the edge that it counts for; without one it was over before the first",
    _COLUMNS,
    _rows,
)
