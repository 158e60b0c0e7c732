"""Packets sent and lost by path and time, from the record of a run's streams. Pure.

A flow's packets count for a path while its links are known: as the switches answered, until anything changed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hpn.failover.analysis.metrics.series import StreamSeries
from hpn.failover.analysis.paths import PathAt
from hpn.failover.analysis.series import Bins, SeriesFlow
from hpn.failover.locating.known import KnownPaths
from hpn.failover.locating.parts import Suspects, Way, suspects_of, ways_of
from hpn.failover.locating.seen import HEALTHY_LOSS, Counts, Reals, Row, Seen


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """A row for each path that a flow had, a column for each bin: running totals, the first column 0.

    ``sent`` and ``lost``: packets, or observations made and bad ones; ``healthy``: share of these on a healthy path, of
    all or of each.
    """

    bins: Bins
    suspects: Suspects
    sent: Counts
    lost: Counts
    healthy: float | Reals = HEALTHY_LOSS

    @classmethod
    def of(
        cls,
        bins: Bins,
        suspects: Suspects,
        made: Sequence[Counts],
        bad: Sequence[Counts],
        healthy: float | Reals = HEALTHY_LOSS,
    ) -> Observed:
        """Return observations from those of each path, bin by bin: how many were made, and how many were bad."""
        return cls(bins, suspects, _totals(made, bins), _totals(bad, bins), healthy)

    def between(self, begin: int, end: int) -> Seen:
        """Return what the bins from ``begin`` (0 if it is before the first) to before ``end`` held."""
        begin = max(0, begin)
        sent, lost = (counts[:, end] - counts[:, begin] for counts in (self.sent, self.lost))
        return Seen(self.suspects, sent, lost, self.healthy)

    def at_ns(self, end: int) -> int:
        """Return the time (CLOCK_MONOTONIC) at which bin ``end`` begins."""
        return self.bins.start_ns + end * self.bins.width_ns


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """A path that a flow took; ``flow``: its row in the series; ``inside``: the bins in which it is known."""

    flow: int
    ways: tuple[Way, ...]
    inside: Row


def observed(known: KnownPaths, series: StreamSeries) -> Observed:
    """Return the packets that streams sent and lost on the paths that are known."""
    paths = taken(known, series.flows, series.bins)
    lost = np.maximum(series.sent.astype(np.int64) - series.received, 0)
    made, bad = ([np.where(path.inside, counts[path.flow], 0) for path in paths] for counts in (series.sent, lost))
    return Observed.of(series.bins, suspects_of(known.ends, [path.ways for path in paths]), made, bad)


def taken(known: KnownPaths, flows: Sequence[SeriesFlow], bins: Bins) -> Sequence[Taken]:
    """Return each path that is known of these flows, once for each flow that took it."""
    rows = {flow.flow: at for at, flow in enumerate(flows)}
    by_flow: dict[int, list[PathAt]] = {}
    for path in known.paths:
        by_flow.setdefault(path.flow, []).append(path)
    found: dict[tuple[int, tuple[Way, ...]], Row] = {}
    for number in sorted(by_flow.keys() & rows.keys() & known.hosts.keys()):
        for path, first, last in _spans(by_flow[number], bins):
            ways = ways_of(known.ends, known.hosts[number], path.links)
            found.setdefault((rows[number], ways), np.zeros(bins.count, dtype=np.bool_))[first:last] = True
    return [Taken(flow, ways, inside) for (flow, ways), inside in found.items()]


def _spans(found: Sequence[PathAt], bins: Bins) -> Iterator[tuple[PathAt, int, int]]:
    """Yield a flow's known paths with their first bin and the one after the last. A bin of a change belongs to none."""
    steps = sorted(found, key=lambda path: path.at_ns)
    ends = [*(step.at_ns for step in steps[1:]), bins.end_ns]
    for step, end_ns in zip(steps, ends, strict=True):
        first = 0 if step is steps[0] else -(-(step.at_ns - bins.start_ns) // bins.width_ns)
        last = bins.count if step is steps[-1] else (end_ns - bins.start_ns) // bins.width_ns
        if step.links and step.dropped is None and first < last:
            yield step, max(first, 0), last


def _totals(rows: Sequence[Counts], bins: Bins) -> Counts:
    found = np.zeros((len(rows), bins.count + 1), dtype=np.int64)
    if rows:
        found[:, 1:] = np.cumsum(np.array(rows, dtype=np.int64), axis=1)
    return found
