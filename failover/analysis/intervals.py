"""Uncertainty intervals of an edge's figures other than flow outages: phases, convergence, job downtime. Pure.

Changes when the time stamp of a phase has another source. A time from an injection to an event is never too short, only
too long. The injection took effect up to its skew after the first clock reading, and the event loop stamps an event
when it handles it. If an event's source reports a less accurate stamp (Linux bonding, when LACP decides), that counts
too. Verdicts, tables and comparisons all use these intervals.
"""

from __future__ import annotations

from hpn.failover.analysis.budget import Interval, around, late_by
from hpn.failover.analysis.downtime import Downtime
from hpn.failover.analysis.model import DrillMetrics, EdgeResult, Phase

RECOVER, SWITCH = "recover", "switch"


def loop_lag_ms(metrics: DrillMetrics) -> float:
    """Return the longest lateness of the event loop, which stamps events; 0 if the host's load is unknown."""
    return metrics.host.loop_lag_max_ms if metrics.host is not None else 0.0


def phase_interval(name: str, ms: float, result: EdgeResult, metrics: DrillMetrics) -> Interval:
    """Return the interval of a phase measured as ``ms``; ``name`` is a field of ``Phases`` or ``converged``."""
    if name == SWITCH:
        return _switch(ms, result.phases.detect, result.phases.switch, metrics)
    if name == RECOVER:
        gap_ms = max(result.resolution_ms, result.send_gap_ms)
        return _to_packets(ms, result.edge.skew_ms + gap_ms + result.phases.recover.late_ms, metrics)
    phase: Phase | None = getattr(result.phases, name, None)
    late_ms, early_ms = (phase.late_ms, phase.early_ms) if phase is not None else (0.0, 0.0)
    late_ms += result.edge.skew_ms + loop_lag_ms(metrics)
    low, high = late_by(ms, late_ms, metrics.settings.clock_ms)
    return Interval(low, high + early_ms)


def _switch(ms: float, detect: Phase, switch: Phase, metrics: DrillMetrics) -> Interval:
    """Return the interval of detect to switch; if both are the same event, its lateness affects both alike."""
    low, high = between_events(ms, metrics)
    if (detect.at_ns, detect.by) == (switch.at_ns, switch.by):
        return Interval(low, high + switch.early_ms)
    return Interval(max(low - switch.late_ms - detect.early_ms, 0.0), high + detect.late_ms + switch.early_ms)


def between_events(ms: float, metrics: DrillMetrics) -> Interval:
    """Return the interval of a time from one event to another, each of them stamped late."""
    return around(ms, loop_lag_ms(metrics) + metrics.settings.clock_ms)


def downtime_interval(ms: float, downtime: Downtime, metrics: DrillMetrics) -> Interval:
    """Return the interval of a job's downtime: the failing call took time, and packets leave one period apart."""
    deaths = (result.edge for result in metrics.edges if result.edge.inject_before_ns == downtime.since_ns)
    skew_ms = max((edge.skew_ms for edge in deaths), default=0.0)
    return _to_packets(ms, skew_ms + downtime.resolution_ms, metrics)


def _to_packets(ms: float, late_ms: float, metrics: DrillMetrics) -> Interval:
    return late_by(ms, late_ms, metrics.settings.clock_ms + metrics.noise.noise_floor_ms)
