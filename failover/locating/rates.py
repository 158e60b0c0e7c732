"""Rates of a job's queue pairs: paths on which messages take longer than they used to. Pure.

A queue pair that waits for others to send has nothing under way, so that one slow link does not make all look slow.
"""

from __future__ import annotations

import numpy as np

from hpn.failover.locating.observed import Observed, taken
from hpn.failover.locating.parts import suspects_of
from hpn.failover.locating.recorded import Recorded
from hpn.failover.locating.usual import unusual
from hpn.testbed.errors import InputError

_LEAST_US = 1000
"""Time under way in a bin from which its rate is one: workers read the clock once a tick."""
_TIMES = 1.25
"""A queue pair is slow from 80 % of its slowest usual rate on down."""


def rates(run: Recorded) -> Observed:
    """Return a look for each queue pair and bin in which messages were under way: bad if slower than usual.

    A message counts over the time it took, so that what an answer rests on is known when the message has ended.
    InputError without a job.
    """
    series = run.messages
    if series is None or series.busy_us is None:
        raise InputError("no queue pairs of a job were timed, so no rates were seen by path; run a drill with a 'job'")
    paths = taken(run.known, series.flows, series.bins)
    busy_us, size = series.busy_us.astype(np.float64), np.maximum(series.size_bytes, 1)
    made, bad, healthy = unusual(
        [busy_us[path.flow] / size[path.flow] for path in paths],
        [path.inside & (series.busy_us[path.flow] >= _LEAST_US) for path in paths],
        series.bins.width_ns,
        room=0,
        times=_TIMES,
    )
    return Observed.of(series.bins, suspects_of(run.known.ends, [path.ways for path in paths]), made, bad, healthy)
