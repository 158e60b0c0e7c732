"""Counters of switch ports: packets that a port says it dropped. Pure.

No host knows them, so they count only where they are named. What is lost without a sound is in no counter.
"""

from __future__ import annotations

import numpy as np

from hpn.failover.analysis.port_sampling import Series
from hpn.failover.analysis.series import Bins
from hpn.failover.locating.observed import Observed
from hpn.failover.locating.parts import suspects_of
from hpn.failover.locating.recorded import Recorded
from hpn.failover.locating.seen import Counts
from hpn.testbed.errors import InputError

_MOST = 2**40
"""Packets between two readings: more is no port's, and no 64-bit sum takes it."""


def counters(run: Recorded) -> Observed:
    """Return the packets that each sampled port was given and dropped. InputError where no ports were sampled."""
    if run.ports is None or not run.ports.series:
        raise InputError("no ports were sampled; add 'sample: {queues: 10 ms, ports: switches}' to the drill")
    ways = [((one.port.link, run.known.ends[one.port.link][0] == one.port.node),) for one in run.ports.series]
    counts = [_by_bin(one, run.bins) for one in run.ports.series]
    made, bad = ([each[at] for each in counts] for at in range(2))
    return Observed.of(run.bins, suspects_of(run.known.ends, ways), made, bad)


def _by_bin(series: Series, bins: Bins) -> tuple[Counts, Counts]:
    """Return packets given to a port and dropped by it, in the bin of the reading that shows them."""
    given, dropped = (np.zeros(bins.count, np.int64) for _ in range(2))
    before = None
    for reading in series.until(bins.end_ns - 1):
        at = (reading.at_ns - bins.start_ns) // bins.width_ns
        if before is not None and at >= 0:
            drops = _more(before.drops, reading.drops)
            dropped[at] += drops
            given[at] += drops + _more(before.sent_packets, reading.sent_packets)
        before = reading
    return given, dropped


def _more(before: int, after: int) -> int:
    """Return by how much a counter grew; counters begin anew where a fault replaces the queue."""
    return min(max(after - before, 0), _MOST)
