"""Figures about the switches' buffers: PFC, headroom, drops, trimming and the PFC watchdog. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.pause_cycles import deadlock
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import Figure
from hpn.scenarios.expect.metric import QUEUES_ONLY, WHOLE_RECORD, Larger, Metric, Needs, Slowed, Takes, Traffic, Unit
from hpn.scenarios.expect.selection import Selection

_NO_BUFFERS = Figure(None, "the run folder has no counters of buffers")
_NOTHING_SENT = Figure(None, "no port sent anything but control frames")
_Count = Callable[[ClassUse], int]


def _of_buffers(measure: Callable[[Sequence[ClassUse]], Figure]) -> Callable[[Selection, DrillMetrics], Figure]:
    """Return a measurement that requires counters of classes that carried data."""

    def measured(_expectation: Selection, metrics: DrillMetrics) -> Figure:
        if metrics.buffers is None:
            return _NO_BUFFERS
        return measure(metrics.buffers) if any(each.carries_data for each in metrics.buffers) else _NOTHING_SENT

    return measured


def _pause_time(found: Sequence[ClassUse]) -> Figure:
    """Return the time in ms, all pauses together, that the class was stopped which was stopped longest."""
    longest = max(found, key=lambda each: each.paused_ns)
    if not longest.paused_ns:
        return Figure(0.0, "no port was stopped")
    still = ", and still is" if longest.paused else ""
    return Figure(longest.paused_ns / 1e6, f"{longest.label}, by {longest.xoff_received:,} XOFF{still}")


def _sum(count: _Count) -> Callable[[Sequence[ClassUse]], Figure]:
    """Return a measurement that adds a counter over all classes; its evidence is the class with the most."""

    def measure(found: Sequence[ClassUse]) -> Figure:
        most = max(found, key=count)
        return Figure(sum(map(count, found)), f"{most.label}: {count(most):,}" if count(most) else "at no port")

    return measure


def _deadlocks(found: Sequence[ClassUse]) -> Figure:
    """Return 1 if queues wait for each other in a ring at the end of the traffic, else 0."""
    ring = deadlock(found)
    return Figure(1, " waits for ".join((*ring, ring[0]))) if ring else Figure(0, "no ring of stopped queues")


def _of_switches(count: _Count) -> _Count:
    return lambda each: count(each) if each.is_switch else 0


def _metric(
    key: str, unit: Unit, summary: str, measure: Callable[[Sequence[ClassUse]], Figure], slowed: Slowed, larger: Larger
) -> Metric:
    return Metric(
        key,
        unit,
        Takes.NOTHING,
        slowed,
        Needs(Traffic.EITHER, buffers=True),
        summary,
        from_metrics(_of_buffers(measure)),
        tells=WHOLE_RECORD,
        larger=larger,
        unmodelled=QUEUES_ONLY,
    )


def _counted(key: str, summary: str, count: _Count, slowed: Slowed, larger: Larger) -> Metric:
    return _metric(key, Unit.COUNT, summary, _sum(count), slowed, larger)


METRICS = (
    _metric(
        "pause_time",
        Unit.MS,
        "time that PFC stopped one priority of a port, all pauses together; the port where it is longest",
        _pause_time,
        Slowed.STRETCHED,
        Larger.WORSE,
    ),
    _counted(
        "pfc_frames",
        "XOFF frames that switches and hosts sent, refreshes included",
        lambda each: each.xoff_sent,
        Slowed.PER_PACKET,
        Larger.AS_LIMITED,
    ),
    _counted(
        "headroom_drops",
        "packets of lossless classes for which the headroom had no room",
        lambda each: each.headroom_drops,
        Slowed.PER_PACKET,
        Larger.WORSE,
    ),
    _counted(
        "buffer_drops",
        "packets for which a queue of a switch, or its buffer, had no room, all classes; headroom apart",
        _of_switches(lambda each: each.drops),
        Slowed.PER_PACKET,
        Larger.WORSE,
    ),
    _counted(
        "packets_trimmed",
        "packets that switches cut to their headers",
        lambda each: each.trimmed,
        Slowed.PER_PACKET,
        Larger.AS_LIMITED,
    ),
    _metric(
        "deadlocks",
        Unit.COUNT,
        "1 if queues that PFC stops wait for each other in a ring when the traffic ends, else 0",
        _deadlocks,
        Slowed.NOT,
        Larger.WORSE,
    ),
    _counted("pfc_storms", "times that the PFC watchdog fired", lambda each: each.storms, Slowed.NOT, Larger.WORSE),
)
