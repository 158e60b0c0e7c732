"""Phases of a failover, and the convergence of the whole lab. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from hpn.failover.analysis import phases
from hpn.failover.analysis.budget import of_statistic
from hpn.failover.analysis.intervals import phase_interval
from hpn.failover.analysis.model import DrillMetrics, EdgeResult, Phase
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import NO_EDGE, Figure, edges_of, longest_of, lower_bound
from hpn.scenarios.expect.metric import (
    NO_BEFORE,
    NOWHERE,
    PROTOCOLS_ONLY,
    Lack,
    Larger,
    Metric,
    Needs,
    Pauses,
    Slowed,
    Takes,
    Traffic,
    Unit,
)
from hpn.scenarios.expect.selection import Selection


def _phase(name: str, unseen: Callable[[EdgeResult], bool], expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return a phase in ms for the edge where it took longest; an undetected fault counts as longer than any other.

    ``unseen``: called with an edge; True if a missing phase took too long to be measured, False if none was due.
    """
    found: list[tuple[EdgeResult, Phase]] = [
        (edge, getattr(edge.phases, name)) for edge in edges_of(expectation, metrics)
    ]
    known = [(each.ms, edge, each) for edge, each in found if each.ms is not None]
    if not known:
        return Figure(None, found[0][1].reason) if found else NO_EDGE
    worst_ms, edge, worst = max(known, key=lambda item: item[0])
    untold = [f"{at.edge.label}: {each.reason}" for at, each in found if _is_untold(at, each, unseen)]
    broken = expectation.bound.is_upper and worst_ms > expectation.limit / 1e6
    if untold and not broken:
        return Figure(None, untold[0])
    evidence = f"{edge.edge.label}: {worst.by}" if worst.by else edge.edge.label
    within = of_statistic((phase_interval(name, ms, edge, metrics) for ms, edge, _ in known), max)
    return Figure(worst_ms, evidence, *within)


def _is_untold(edge: EdgeResult, phase: Phase, unseen: Callable[[EdgeResult], bool]) -> bool:
    """Return True if a phase of an edge took longer than can be measured."""
    return bool(phase.reason) if phase.ms is not None else unseen(edge)


def _never(_edge: EdgeResult) -> bool:
    return False


def _recover(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the recovery time, which ends only if every flow recovered, and is 0 if no flow lost anything."""
    edges = edges_of(expectation, metrics)
    lost = [edge for edge in edges if edge.flows_unrecovered or edge.flows_died]
    if lost:
        return longest_of([_unrecovered(edge) for edge in lost])
    hit = [flow for edge in edges for flow in metrics.flows_at(edge) if flow.relation.is_touched]
    if edges and not any(flow.sent for flow in hit):
        return Figure(None, "no flow that is hit sent anything")
    if edges and not any(edge.flows_lossy for edge in edges):
        hidden_ms = max(edge.worst_outage_interval_ms.high for edge in edges)
        return Figure(0.0, "no flow lost anything", 0.0, hidden_ms)
    return _phase("recover", _never, expectation, metrics)


def _unrecovered(edge: EdgeResult) -> Figure:
    """Return the whole window, from the time at which the injection was certainly complete."""
    n, at = max(edge.flows_unrecovered, edge.flows_died), edge.edge
    window_ms = max(at.window_end_ns - at.inject_after_ns, 0) / 1e6
    return lower_bound(window_ms, f"{n} flows did not recover after {at.label}", never=edge.flows_died > 0)


def _lab_converged(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the time from injection to the lab's last protocol state change in ms, for the slowest edge.

    Without the validation time of quiet after it the lab had not converged, and the time is a lower bound.
    """
    found = [_converged(edge, metrics) for edge in edges_of(expectation, metrics)]
    return longest_of(found) if found else NO_EDGE


def _converged(edge: EdgeResult, metrics: DrillMetrics) -> Figure:
    phase, label = phases.converged(edge, metrics.settings.validation_s), edge.edge.label
    if phase.ms is None:
        return Figure(None, f"{phase.reason} at {label}")
    within = phase_interval("converged", phase.ms, edge, metrics)
    if phase.reason:
        return lower_bound(within.low, f"{label}: {phase.by}, {phase.reason}")
    return Figure(phase.ms, f"{label}: {phase.by}", *within)


def _timed(
    key: str,
    summary: str,
    measure: Callable[[Selection, DrillMetrics], Figure],
    *,
    time: str = "",
    pauses: Pauses = Pauses.RIGHT,
    traffic: Traffic = Traffic.EITHER,
    tells: Mapping[Lack, str] = NOWHERE,
) -> Metric:
    needs = Needs(traffic, fault=True, pauses=pauses, time=time)
    return Metric(
        key,
        Unit.MS,
        Takes.EDGES,
        Slowed.STRETCHED,
        needs,
        summary,
        from_metrics(measure),
        larger=Larger.WORSE,
        tells=tells,
        unmodelled=PROTOCOLS_ONLY,
    )


DETECT = _timed(
    "detect",
    "from the injection to the first sign that something hit noticed",
    partial(_phase, "detect", lambda _edge: True),
)
METRICS = (
    DETECT,
    _timed(
        "switch",
        "from there to the last hit host's LAG being rewritten; with Linux bonding, to the driver leaving the port out:"
        " at once when its carrier goes, else as it tells",
        partial(_phase, "switch", lambda edge: any(link.lag for link in edge.edge.links)),
    ),
    _timed(
        "converge", "from the injection to the last route change of what is hit", partial(_phase, "converge", _never)
    ),
    _timed(
        "recover",
        "from the injection to the last flow's recovery",
        _recover,
        time="a flow can be called recovered",
        pauses=Pauses.SPANNED,
        traffic=Traffic.STREAMS,
        tells=NO_BEFORE,
    ),
    _timed(
        "converged",
        "from the injection to the last change of state of any protocol anywhere",
        _lab_converged,
        time="the lab can be quiet",
    ),
)
