"""Losses by flow and time: a row per flow, the most harmed first, a cell where packets were missing. Imports numpy.

Changes when the map shows something else. Only losses are drawn, so the map of a run without any is empty and small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpn.failover.analysis.metrics.series import MessageSeries, StreamSeries
from hpn.results.page.axis import Linear, Tick

_MOST_FLOWS = 32
_MOST_COLUMNS = 600
"""Maximum columns of a row: screens have few more, and narrower cells are invisible."""
_SHADES = 4
_WIDE, _HIGH = 1000, 100  # size of a row's box
_LEAST_WIDE = 2


@dataclass(frozen=True, slots=True)
class Shade:
    """Stretches of time with the same share of loss, as one SVG path in a box of 1000 x 100.

    ``number``: from 1, little loss, to 4, total loss; the height of a stretch follows it.
    """

    number: int
    path: str


@dataclass(frozen=True, slots=True)
class Row:
    """One flow."""

    name: str
    lost: int  # packets, total
    shades: tuple[Shade, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Losses of the flows shown. ``left_out``: number of flows that lost less."""

    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    bin_ms: float
    left_out: int


def heat_map(series: StreamSeries | MessageSeries) -> HeatMap | None:
    """Return the map of losses, of a job what its queue pairs missed; None if no flow lost anything."""
    if isinstance(series, MessageSeries):
        sent = series.packets.astype(np.int64)
        missing = np.zeros_like(sent) if series.retries is None else series.retries.astype(np.int64)
    else:
        sent = series.sent.astype(np.int64)
        missing = np.maximum(sent - series.received, 0)
    lost = missing.sum(axis=1)
    order = [at for at in np.argsort(-lost, kind="stable").tolist() if lost[at] > 0]
    if not order:
        return None
    bins = series.bins
    every = -(-bins.count // _MOST_COLUMNS)
    shown = order[:_MOST_FLOWS]
    stretches = np.arange(0, bins.count, every)
    missing, sent = (np.add.reduceat(counts[shown], stretches, axis=1) for counts in (missing, sent))
    share = np.divide(missing, sent, out=np.zeros(missing.shape), where=sent > 0)
    shades = np.ceil(share * _SHADES).astype(np.int64)
    unit = _WIDE * every / bins.count
    rows = tuple(
        Row(series.flows[at].name, int(lost[at]), _shades(shades[row].tolist(), unit)) for row, at in enumerate(shown)
    )
    axis = Linear(0.0, bins.count * bins.width_ns / 1e9)
    return HeatMap(rows, axis.ticks(7), every * bins.width_ns / 1e6, len(order) - len(rows))


def _shades(shades: list[int], unit: float) -> tuple[Shade, ...]:
    """Return the runs of each shade; a column is ``unit`` of the box's width."""
    paths: dict[int, list[str]] = {}
    begin = 0
    for at in range(1, len(shades) + 1):
        if at == len(shades) or shades[at] != shades[begin]:
            if shade := shades[begin]:
                left, wide = round(begin * unit, 1), round(max((at - begin) * unit, _LEAST_WIDE), 1)
                high = _HIGH * shade // _SHADES
                paths.setdefault(shade, []).append(f"M{left:g} {_HIGH}v-{high}h{wide:g}v{high}z")
            begin = at
    return tuple(Shade(number, "".join(paths[number])) for number in sorted(paths))
