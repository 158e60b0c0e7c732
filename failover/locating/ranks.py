"""Ranks of a job: hosts that compute longer than others do at the same work. Pure.

C4D (HPCA 2025) compares ranks too. Ranks wait for each other when they communicate, never when they compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from hpn.failover.analysis.job import SpanTime
from hpn.failover.locating.observed import Observed
from hpn.failover.locating.parts import suspects_of
from hpn.failover.locating.recorded import Recorded
from hpn.testbed.errors import InputError

COMPUTE = "compute"
_TIMES = 1.2
"""A block is slow from this many times the median of all ranks on."""
_HEALTHY = 0.01
"""Share of slow blocks of a healthy host: a guess, as ranks are compared with each other and not with themselves."""


def ranks(run: Recorded) -> Observed:
    """Return the blocks of compute of each host by bin: bad if longer than the median of that block among ranks.

    A block counts when it ends. InputError without ranks that compute.
    """
    spans = [span for span in run.spans if span.kind == COMPUTE and span.rank in (run.hosts or {})]
    if not spans or run.hosts is None:
        raise InputError("no rank computes, so none can be slow; run a drill with a 'job' of 'training'")
    usual = _medians(spans)
    hosts = sorted({run.hosts[span.rank] for span in spans})
    rows = {host: at for at, host in enumerate(hosts)}
    made, bad = (np.zeros((len(hosts), run.bins.count), np.int64) for _ in range(2))
    for span in spans:
        at = (span.end_ns - run.bins.start_ns) // run.bins.width_ns
        if 0 <= at < run.bins.count:
            row = rows[run.hosts[span.rank]]
            made[row, at] += 1
            bad[row, at] += span.end_ns - span.begin_ns > _TIMES * usual[span.iteration, span.label]
    within = suspects_of(run.known.ends, [((host, True),) for host in hosts])
    return Observed.of(run.bins, within, list(made), list(bad), _HEALTHY)


def _medians(spans: Sequence[SpanTime]) -> Mapping[tuple[int, str], float]:
    """Return the median time (ns) of each block among the ranks that did it, by iteration and label."""
    times: dict[tuple[int, str], list[int]] = {}
    for span in spans:
        times.setdefault((span.iteration, span.label), []).append(span.end_ns - span.begin_ns)
    return {key: median(found) for key, found in times.items()}
