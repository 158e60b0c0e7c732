"""Stamps that switches wrote into the probes of a job's queue pairs, by hop and time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpn.failover.analysis.metrics.series import Counts
from hpn.failover.analysis.metrics.trace import Ints
from hpn.failover.analysis.series import Bins, SeriesFlow, series_flows
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.columns import Records
from hpn.traffic.transport.telemetry import ROOM


@dataclass(frozen=True, eq=False)
class StampSeries:
    """Times of stamps, the longest of each bin, in us rounded up; by queue pair, hop (``ROOM`` of them), and bin.

    ``took_us``: since the stamp of the switch before, or since the probe was sent; 0: there was none. ``wait_us``:
    until a whole packet behind it would have left the port by which it went on.
    """

    bins: Bins
    flows: tuple[SeriesFlow, ...]
    took_us: Counts
    wait_us: Counts


def stamp_series(stamps: Records, flows: Sequence[FlowSpec], bins: Bins) -> StampSeries:
    """Return the series of records of ``traffic.jobengine.records.STAMP``."""
    rows = {flow.id: at for at, flow in enumerate(flows)}
    when = (stamps["at_ns"] - bins.start_ns) // bins.width_ns
    mine = stamps[(when >= 0) & (when < bins.count) & (stamps["hop"] < ROOM)]
    at = (
        np.array([rows[flow] for flow in mine["flow"].tolist()], np.intp),
        mine["hop"].astype(np.intp),
        (mine["at_ns"] - bins.start_ns) // bins.width_ns,
    )
    took_us, wait_us = (np.zeros((len(flows), ROOM, bins.count), np.uint32) for _ in range(2))
    np.maximum.at(took_us, at, np.maximum(_microseconds(mine["took_ns"]), 1))
    np.maximum.at(wait_us, at, _microseconds(mine["wait_ns"]))
    return StampSeries(bins, series_flows(flows), took_us, wait_us)


def _microseconds(values_ns: Ints) -> Ints:
    found: Ints = -(-values_ns.astype(np.int64) // 1000)
    return found
