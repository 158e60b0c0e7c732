"""Retransmissions of a job's queue pairs: paths on which packets are told to be missing. Pure.

007 (NSDI 2018) locates so: each host asks for the path of a flow that retransmits. An adapter counts the same as
``packet_seq_err`` and ``local_ack_timeout_err``; here each has its time and queue pair.
"""

from __future__ import annotations

import numpy as np

from hpn.failover.locating.observed import Observed, taken
from hpn.failover.locating.parts import suspects_of
from hpn.failover.locating.recorded import Recorded
from hpn.failover.locating.usual import usual_share
from hpn.testbed.errors import InputError


def retries(run: Recorded) -> Observed:
    """Return the packets that each queue pair sent on a path, and as bad those that were told to be missing.

    A message's packets count over the time it took. What a path misses in its first 1 s is usual: full queues drop
    packets, too. InputError without a job whose queue pairs take one path.
    """
    series = run.messages
    if series is None or series.retries is None:
        raise InputError(
            "no queue pair's retransmissions were recorded; run a drill with a 'job' on one path a queue pair"
        )
    paths = taken(run.known, series.flows, series.bins)
    counts = series.packets, series.retries
    made, bad = ([np.where(path.inside, of[path.flow], 0) for path in paths] for of in counts)
    healthy = usual_share(made, bad, [path.inside for path in paths], series.bins.width_ns)
    return Observed.of(series.bins, suspects_of(run.known.ends, [path.ways for path in paths]), made, bad, healthy)
