"""Figures about locating: when losses told where a fault is, who was accused wrongly, what was drained. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.failover.analysis.location import Drained, LocatedFault
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.phrases import packets, plain
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import Figure, longest_of
from hpn.scenarios.expect.metric import Larger, Metric, Needs, Slowed, Takes, Traffic, Unit
from hpn.scenarios.expect.selection import Selection

_UNKNOWN = Figure(None, "nobody knows the paths of this run's packets")


def _located(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the longest time from a fault to the answer from which on none was wrong before its repair, in ms."""
    if metrics.location is None:
        return _UNKNOWN
    found = [each for each in metrics.location.faults if expectation.fault in (None, each.fault)]
    if not found:
        return Figure(None, "no fault was injected")
    return longest_of([_of(each, metrics.location.step_ms) for each in found])


def _of(fault: LocatedFault, step_ms: float) -> Figure:
    told = f"{fault.wrong} of {fault.answers} answers wrong"
    if fault.lost == 0 and not fault.wrong:
        return Figure(None, f"{fault.fault} cost no packet, so none shows where it is")
    if fault.stable_ms is None:
        who = f"last accused: {fault.suspect}" if fault.suspect else "nobody was accused"
        return Figure(None, f"{fault.fault} was not located for good: {who}; {told}", never=True)
    first = "" if fault.first_ms == fault.stable_ms else f", first after {plain(fault.first_ms or 0)} ms"
    return Figure(
        fault.stable_ms, f"{fault.fault}: {fault.suspect}{first}; {told}", fault.stable_ms - step_ms, fault.stable_ms
    )


def _false_alarms(_expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return how many answers name a part that never failed while nothing is wrong."""
    if metrics.location is None:
        return _UNKNOWN
    every = f"an answer each {plain(metrics.location.step_ms)} ms, by {metrics.location.method}"
    return Figure(metrics.location.false_alarms, every)


def _drained(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the longest time from a fault until its link was taken out, in ms."""
    if metrics.location is None:
        return _UNKNOWN
    asked = [each.fault for each in metrics.location.faults if expectation.fault in (None, each.fault)]
    if not asked:
        return Figure(None, "no fault was injected")
    return longest_of([_drain_of(fault, metrics.location.drains) for fault in asked])


def _drain_of(fault: str, drains: Sequence[Drained]) -> Figure:
    first = next((each for each in drains if each.fault == fault), None)
    if first is None:
        return Figure(None, f"{fault} was not drained; its events say why", never=True)
    return Figure(first.after_ms, f"{first.link}: {packets(first.lost)} lost since, about {first.if_left} if left")


def _wrong_drains(_expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return how many links were taken out in which no fault stood."""
    if metrics.location is None:
        return _UNKNOWN
    wrong = [each for each in metrics.location.drains if not each.fault]
    told = f"of {len(metrics.location.drains)} drains"
    if wrong:
        told += f"; {wrong[0].link} was well, and {packets(wrong[0].lost)} were lost since"
    return Figure(len(wrong), told)


METRICS = (
    Metric(
        "located",
        Unit.MS,
        Takes.FAULT,
        Slowed.STRETCHED,
        Needs(Traffic.FLOWS, fault=True, paths=True),
        "from a fault to the answer of `hpn locate` from which on none was wrong before the repair. Only what hosts"
        " sent and received is used, and its paths",
        from_metrics(_located),
        larger=Larger.WORSE,
    ),
    Metric(
        "false_alarms",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.NOT,
        Needs(Traffic.FLOWS, paths=True),
        "answers of `hpn locate`, one each 100 ms, that name a part which never failed while nothing is wrong",
        from_metrics(_false_alarms),
        larger=Larger.WORSE,
    ),
    Metric(
        "drained",
        Unit.MS,
        Takes.FAULT,
        Slowed.STRETCHED,
        Needs(Traffic.STREAMS, fault=True, paths=True, drains=True),
        "from a fault until `locate: {act: ...}` took its link out; with the packets lost since, and an estimate of"
        " those lost if it had stayed",
        from_metrics(_drained),
        larger=Larger.WORSE,
    ),
    Metric(
        "wrong_drains",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.NOT,
        Needs(Traffic.STREAMS, paths=True, drains=True),
        "links that `locate: {act: ...}` took out while no fault was in them",
        from_metrics(_wrong_drains),
        larger=Larger.WORSE,
    ),
)
