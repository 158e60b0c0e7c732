"""Packet loss split into loss by congestion and loss by failover. Pure.

Neither is known where the offered load of a run is not known at all times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hpn.failover.analysis.model import DrillMetrics
from hpn.scenarios.expect.choose import NOTHING_SENT, FlowAt, chosen_flows, flows_by_edge, no_outage, nothing
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import Figure, longest_of, lower_bound, so_far
from hpn.scenarios.expect.metric import NO_BEFORE, Larger, Metric, Needs, Pauses, Slowed, Takes, Unit
from hpn.scenarios.expect.selection import Selection

_NOBODY_KNOWS = "nobody knows the offered load: {why}"


def _unknown(metrics: DrillMetrics) -> Figure | None:
    """Return a figure without value if paths are unknown, else None."""
    offered = metrics.offered
    if offered is None:
        return Figure(None, _NOBODY_KNOWS.format(why="the run folder has none, or no streams ran"))
    unknown = next((span for span in offered.spans if span.unknown), None)
    if unknown is None:
        return None
    where = f"after {unknown.after}" if unknown.after else "before the first fault"
    return Figure(None, _NOBODY_KNOWS.format(why=f"the paths of {unknown.unknown} flows {where} are not known"))


def _by_congestion(at: FlowAt) -> int:
    return 0 if at.result.congestion is None else at.result.congestion.lost


def _by_failover(at: FlowAt) -> int:
    return at.lost - _by_congestion(at)


def _packets(count: Callable[[FlowAt], int]) -> Callable[[Selection, DrillMetrics], Figure]:
    def found(expectation: Selection, metrics: DrillMetrics) -> Figure:
        chosen = list(chosen_flows(expectation, metrics))
        if not chosen:
            return nothing(expectation)
        lossy = {at.flow.name for at in chosen if count(at)}
        evidence = f"of {len(lossy)} flows" if lossy else f"none of {len({at.flow.name for at in chosen})} flows"
        if not any(at.result.sent for at in chosen):
            return NOTHING_SENT
        found = _unknown(metrics) or Figure(sum(map(count, chosen)), evidence)
        return so_far(found) if any(at.going_on for at in chosen) else found

    return found


def _failover_outage(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the longest outage of a flow, without loss by congestion."""
    chosen = [at for found in flows_by_edge(expectation, metrics).values() for at in found]
    if not chosen:
        return no_outage(expectation, metrics)
    unknown = _unknown(metrics)
    if unknown is not None:
        return unknown
    found = longest_of([_outage(at) for at in chosen])
    return found if found.value else replace(found, evidence="no flow lost anything to it")


def _outage(at: FlowAt) -> Figure:
    split = at.result.congestion
    if split is None:
        return at.outage
    if not split.over:
        return lower_bound(split.low_ms, at.label, never=at.never)
    return Figure(split.failover_ms, at.label, split.low_ms, split.high_ms)


def _counted(key: str, summary: str, count: Callable[[FlowAt], int]) -> Metric:
    return Metric(
        key,
        Unit.COUNT,
        Takes.FLOWS,
        Slowed.PER_PACKET,
        _FAULT,
        summary,
        from_metrics(_packets(count)),
        tells=NO_BEFORE,
        larger=Larger.WORSE,
    )  # fmt: skip


_FAULT = Needs(fault=True)
METRICS = (
    _counted(
        "congestion_loss",
        "packets lost on a working path across a link that is offered more than its rate",
        _by_congestion,
    ),
    _counted("failover_loss", "all other packets lost", _by_failover),
    Metric(
        "failover_outage",
        Unit.MS,
        Takes.FLOWS,
        Slowed.STRETCHED,
        Needs(fault=True, period=True, pauses=Pauses.BLIND),
        "the longest outage of a flow, without the packets that congestion took",
        from_metrics(_failover_outage),
        larger=Larger.WORSE,
        tells=NO_BEFORE,
    ),
)
