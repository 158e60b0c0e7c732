"""Losses of streams: packets sent and lost by path. Pure."""

from __future__ import annotations

from hpn.failover.locating.observed import Observed, observed
from hpn.failover.locating.recorded import Recorded
from hpn.testbed.errors import InputError


def losses(run: Recorded) -> Observed:
    """Return the packets that streams sent and lost on each path that is known. InputError without streams."""
    if run.streams is None:
        raise InputError("no streams ran, so no packets were counted by path; run the pattern 'probes'")
    return observed(run.known, run.streams)
