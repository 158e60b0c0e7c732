"""Delays of streams: paths on which packets come later than they used to. Pure."""

from __future__ import annotations

import numpy as np

from hpn.failover.locating.observed import Observed, taken
from hpn.failover.locating.parts import suspects_of
from hpn.failover.locating.recorded import Recorded
from hpn.failover.locating.usual import unusual
from hpn.testbed.errors import InputError

ROOM_US = 200
"""Two steps of the delays in a run folder, which are rounded up to 100 us."""


def delays(run: Recorded) -> Observed:
    """Return a look for each flow and bin in which packets arrived: bad if the latest took longer than usual."""
    series = run.streams
    if series is None:
        raise InputError("no streams ran, so no delays were seen by path; run the pattern 'probes'")
    paths = taken(run.known, series.flows, series.bins)
    made, bad, healthy = unusual(
        [series.delay_us[path.flow].astype(np.float64) for path in paths],
        [path.inside & (series.received[path.flow] > 0) for path in paths],
        series.bins.width_ns,
        ROOM_US,
    )
    return Observed.of(series.bins, suspects_of(run.known.ends, [path.ways for path in paths]), made, bad, healthy)
