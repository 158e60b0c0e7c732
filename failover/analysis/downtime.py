"""Downtime of a job whose host was replaced; computed by ``failover.analysis.metrics.downtime``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Downtime:
    """From the host's death to the moment at which every replacement flow had K packets in order delivered.

    ``ms`` is None when that moment did not come, and ``reason`` says why. It can be told to ``resolution_ms``.
    """

    ms: float | None
    since_ns: int  # the first death of the hosts taken over from, before the call
    until_ns: int | None
    stand_ins: int
    last_flow: str  # the replacement flow that came last
    resolution_ms: float
    reason: str = ""
