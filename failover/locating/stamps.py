"""In-band telemetry: stamps that switches wrote into the probes of HPCC. Pure.

A port writes its queue and rate. If a packet has to wait for longer than usual there, the link that it waits for is
accused. Otherwise a longer time between two stamps was spent on the link in between. So each look is at one direction
of one link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hpn.failover.analysis.series import Bins
from hpn.failover.locating.observed import Observed, taken
from hpn.failover.locating.parts import suspects_of
from hpn.failover.locating.recorded import Recorded
from hpn.failover.locating.seen import Counts, Row
from hpn.failover.locating.usual import unusual
from hpn.testbed.errors import InputError
from hpn.traffic.transport.telemetry import ROOM

_Hop = tuple[int, int]
"""A path, and how many of its switches, or links, come before."""
_ROOM_US, _TIMES = 5.0, 1.25
"""By how much a time is to exceed the longest of the first seconds, and how many times."""


def stamps(run: Recorded) -> Observed:
    """Return a look for each link of a path and bin: bad if its port made packets wait, or if crossing it took long.

    The last link's far end writes no stamp. InputError without telemetry of queue pairs that take one path.
    """
    series = run.stamps
    if series is None:
        raise InputError(
            "no switch wrote into packets; run a drill with a 'job', 'congestion: hpcc' and 'switch' in virtual time"
        )
    paths = taken(run.known, series.flows, series.bins)
    hops = [(at, hop) for at, path in enumerate(paths) for hop in range(min(len(path.ways) - 1, ROOM))]
    took_us, wait_us = ([of[paths[at].flow, hop] for at, hop in hops] for of in (series.took_us, series.wait_us))
    there = [paths[at].inside & (took > 0) for (at, _), took in zip(hops, took_us, strict=True)]
    queues, waits, healthy = _unusual(wait_us, there, series.bins)
    as_usual = [each & (bad == 0) for each, bad in zip(there, waits, strict=True)]
    times, lates, _ = _unusual(took_us, as_usual, series.bins)
    made, bad = _by_link(hops, queues, times), _by_link(hops, waits, lates)
    suspects = suspects_of(run.known.ends, [(paths[at].ways[link],) for at, link in made])
    return Observed.of(series.bins, suspects, [*made.values()], [*bad.values()], healthy)


def _by_link(hops: Sequence[_Hop], of_port: Sequence[Counts], of_time: Sequence[Counts]) -> Mapping[_Hop, Counts]:
    """Return what either says of each link of a path: a stamp's port is that of the next link, its time of the last."""
    found: dict[_Hop, Counts] = {}
    for (at, hop), port, time in zip(hops, of_port, of_time, strict=True):
        for link, counts in ((hop, time), (hop + 1, port)):
            found[at, link] = np.maximum(found.get((at, link), 0), counts)
    return found


def _unusual(values_us: Sequence[Counts], there: Sequence[Row], bins: Bins) -> tuple[list[Counts], list[Counts], float]:
    return unusual([value.astype(np.float64) for value in values_us], there, bins.width_ns, _ROOM_US, _TIMES)
