"""Counts: packets lost or impaired, flows that lost any or did not come back, queue pairs that died. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from failover.analysis.model import DrillMetrics
from scenarios.expect.asked import Asked
from scenarios.expect.choose import FlowAt, chosen_flows, nothing, whole_record
from scenarios.expect.evidence import from_metrics
from scenarios.expect.figure import Figure
from scenarios.expect.impaired import packets_impaired
from scenarios.expect.metric import Metric, Needs, Pauses, Slowed, Takes, Unit


def _packets_lost(expectation: Asked, metrics: DrillMetrics) -> Figure:
    flows = whole_record(expectation, metrics)
    if flows is not None:
        return _count({flow.name: flow.lost + flow.corrupted for flow in flows}, expectation)
    return _count(_sums(expectation, metrics, lambda at: at.lost), expectation)


def _packets_impaired(expectation: Asked, metrics: DrillMetrics) -> Figure:
    flows = whole_record(expectation, metrics)
    if flows is not None:
        counted = _count({flow.name: flow.lost + flow.corrupted + flow.late for flow in flows}, expectation)
        return packets_impaired(counted, [edge for flow in flows for edge in flow.edges])
    chosen = list(chosen_flows(expectation, metrics))
    counted = _count(_sums(expectation, metrics, lambda at: at.result.impairment.packets), expectation)
    return packets_impaired(counted, [at.result for at in chosen])


def _flows_with_loss(expectation: Asked, metrics: DrillMetrics) -> Figure:
    flows = whole_record(expectation, metrics)
    if flows is not None:
        return _count({flow.name: int(flow.lost + flow.corrupted > 0) for flow in flows}, expectation)
    return _count(_any(expectation, metrics, lambda at: at.lost > 0), expectation)


def _flows_unrecovered(expectation: Asked, metrics: DrillMetrics) -> Figure:
    return _count(_any(expectation, metrics, lambda at: at.dead or not at.result.recovered_in_window), expectation)


def _queue_pair_deaths(expectation: Asked, metrics: DrillMetrics) -> Figure:
    flows = whole_record(expectation, metrics)
    if flows is not None:
        return _count({flow.name: int(flow.stopped_at_ns is not None) for flow in flows}, expectation)
    return _count(_any(expectation, metrics, lambda at: at.result.stopped_by_error), expectation)


def _sums(expectation: Asked, metrics: DrillMetrics, count: Callable[[FlowAt], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for at in chosen_flows(expectation, metrics):
        found[at.result.name] = found.get(at.result.name, 0) + count(at)
    return found


def _any(expectation: Asked, metrics: DrillMetrics, holds: Callable[[FlowAt], bool]) -> dict[str, int]:
    return {name: int(n > 0) for name, n in _sums(expectation, metrics, lambda at: int(holds(at))).items()}


def _count(by_flow: Mapping[str, int], expectation: Asked) -> Figure:
    if not by_flow:
        return nothing(expectation)
    worst = max(by_flow, key=lambda name: by_flow[name])
    found = sum(n > 0 for n in by_flow.values())
    evidence = f"{worst} and {found - 1} more" if found > 1 else worst if found else f"none of {len(by_flow)} flows"
    return Figure(sum(by_flow.values()), evidence)


_NOTHING = Needs()


def _counted(
    key: str,
    summary: str,
    slowed: Slowed,
    measure: Callable[[Asked, DrillMetrics], Figure],
    needs: Needs = _NOTHING,
    *,
    over_record: bool = True,
) -> Metric:
    measured = from_metrics(measure)
    return Metric(key, Unit.COUNT, Takes.FLOWS, slowed, needs, summary, measured, over_record=over_record)


PACKETS_LOST = _counted("packets_lost", "", Slowed.PER_PACKET, _packets_lost)
METRICS = (
    PACKETS_LOST,
    _counted("packets_impaired", "lost, corrupted or late", Slowed.PER_PACKET, _packets_impaired),
    _counted("flows_with_loss", "", Slowed.PER_QUEUE_PAIR, _flows_with_loss),
    _counted(
        "flows_unrecovered",
        "not back before the next edge",
        Slowed.PER_QUEUE_PAIR,
        _flows_unrecovered,
        Needs(fault=True, pauses=Pauses.SPANNED),
        over_record=False,
    ),
    _counted("queue_pair_deaths", "", Slowed.PER_QUEUE_PAIR, _queue_pair_deaths),
)
