"""When which flow lost how much: a row a flow, the most harmed first, a cell where packets were missing. Imports numpy.

Changes when the map shows something else. Losses only are drawn, so the map of a run without any is empty and small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from failover.analysis.metrics.series import StreamSeries
from results.page.axis import Linear, Tick

_MOST_FLOWS = 32
_MOST_CELLS = 4000
_SHADES = 4


@dataclass(frozen=True, slots=True)
class Cell:
    """A stretch of time in which a flow lost alike; per cent of the map's width. ``shade``: 1 little to 4 all."""

    left_pct: float
    width_pct: float
    shade: int


@dataclass(frozen=True, slots=True)
class Row:
    """One flow."""

    name: str
    lost: int  # packets in all
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """``left_out``: flows that lost less than those shown."""

    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    bin_ms: float
    left_out: int


def heat_map(streams: StreamSeries) -> HeatMap | None:
    """None where nobody lost anything."""
    sent, received = streams.sent.astype(np.int64), streams.received.astype(np.int64)
    missing = np.maximum(sent - received, 0)
    lost = missing.sum(axis=1)
    order = [at for at in np.argsort(-lost, kind="stable").tolist() if lost[at] > 0]
    if not order:
        return None
    bins = streams.bins
    share = np.divide(missing, sent, out=np.zeros(missing.shape), where=sent > 0)
    shades = np.ceil(share * _SHADES).astype(np.int64)
    rows: list[Row] = []
    left = _MOST_CELLS
    for at in order[:_MOST_FLOWS]:
        cells = _cells(shades[at].tolist(), bins.count)[:left]
        left -= len(cells)
        rows.append(Row(streams.flows[at].name, int(lost[at]), cells))
    axis = Linear(0.0, bins.count * bins.width_ns / 1e9)
    return HeatMap(tuple(rows), axis.ticks(7), bins.width_ns / 1e6, len(order) - len(rows))


def _cells(shades: list[int], count: int) -> tuple[Cell, ...]:
    """Runs of one shade."""
    found, begin = [], 0
    for at in range(1, len(shades) + 1):
        if at == len(shades) or shades[at] != shades[begin]:
            if shades[begin]:
                found.append(Cell(100 * begin / count, 100 * (at - begin) / count, shades[begin]))
            begin = at
    return tuple(found)
