"""The intervals of figures that an edge has besides its flows' outages: phases, convergence, job downtime. Pure.

Changes when a phase is stamped by something else. A time from an injection to an event is told too long, never too
short: the injection came to pass up to its skew after the clock was first read, and the event loop tells of an event
when it gets to it. Where the source of an event says that its stamp is further off (Linux bonding, when LACP decides),
that counts too. Verdicts, tables and comparisons all ask here.
"""

from __future__ import annotations

from hpn.failover.analysis.budget import Interval, around, late_by
from hpn.failover.analysis.downtime import Downtime
from hpn.failover.analysis.model import DrillMetrics, EdgeResult, Phase

RECOVER, SWITCH = "recover", "switch"


def loop_lag_ms(metrics: DrillMetrics) -> float:
    """How long the event loop, which stamps events, was once late; 0 where nothing is known of the host."""
    return metrics.host.loop_lag_max_ms if metrics.host is not None else 0.0


def phase_interval(name: str, ms: float, result: EdgeResult, metrics: DrillMetrics) -> Interval:
    """What the phase of that name, a field of ``Phases`` or ``converged``, may have been that is measured as ``ms``."""
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
    """The interval of detect to switch; where both are the one event it is late for both alike."""
    low, high = between_events(ms, metrics)
    if (detect.at_ns, detect.by) == (switch.at_ns, switch.by):
        return Interval(low, high + switch.early_ms)
    return Interval(max(low - switch.late_ms - detect.early_ms, 0.0), high + detect.late_ms + switch.early_ms)


def between_events(ms: float, metrics: DrillMetrics) -> Interval:
    """The interval of a time from one event to another, each of them stamped late."""
    return around(ms, loop_lag_ms(metrics) + metrics.settings.clock_ms)


def downtime_interval(ms: float, downtime: Downtime, metrics: DrillMetrics) -> Interval:
    """The interval of a job's downtime: the death's call took time, and packets leave one period after another."""
    deaths = (result.edge for result in metrics.edges if result.edge.inject_before_ns == downtime.since_ns)
    skew_ms = max((edge.skew_ms for edge in deaths), default=0.0)
    return _to_packets(ms, skew_ms + downtime.resolution_ms, metrics)


def _to_packets(ms: float, late_ms: float, metrics: DrillMetrics) -> Interval:
    return late_by(ms, late_ms, metrics.settings.clock_ms + metrics.noise.noise_floor_ms)
