"""Loss told apart: what congestion took, and what failover took. Pure.

Where the offered load of a run is not known at all times, neither can be told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from failover.analysis.budget import Interval, of_statistic
from failover.analysis.model import DrillMetrics
from scenarios.expect.asked import Asked
from scenarios.expect.choose import FlowAt, chosen_flows, flows_by_edge, no_outage, nothing
from scenarios.expect.evidence import from_metrics
from scenarios.expect.figure import Figure
from scenarios.expect.metric import Metric, Needs, Pauses, Slowed, Takes, Unit

_NOBODY_KNOWS = "nobody knows the offered load: {why}"


def _unknown(metrics: DrillMetrics) -> Figure | None:
    """No figure, where paths are not known."""
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


def _packets(count: Callable[[FlowAt], int]) -> Callable[[Asked, DrillMetrics], Figure]:
    def found(expectation: Asked, metrics: DrillMetrics) -> Figure:
        chosen = list(chosen_flows(expectation, metrics))
        if not chosen:
            return nothing(expectation)
        lossy = {at.flow.name for at in chosen if count(at)}
        evidence = f"of {len(lossy)} flows" if lossy else f"none of {len({at.flow.name for at in chosen})} flows"
        return _unknown(metrics) or Figure(sum(map(count, chosen)), evidence)

    return found


def _failover_outage(expectation: Asked, metrics: DrillMetrics) -> Figure:
    """The longest outage of a flow without what congestion took."""
    chosen = [at for found in flows_by_edge(expectation, metrics).values() for at in found]
    if not chosen:
        return no_outage(expectation, metrics)
    unknown = _unknown(metrics)
    if unknown is not None:
        return unknown
    value, open_ended, label = max(((*_outage(at), at.label) for at in chosen), key=lambda found: (found[1], found[0]))
    return Figure(
        value, label if value else "no flow lost anything to it", *of_statistic(_intervals(chosen), max), open_ended
    )


def _outage(at: FlowAt) -> tuple[float, bool]:
    split = at.result.congestion
    return (at.outage_ms, at.open_ended) if split is None else (split.failover_ms, not split.over)


def _intervals(chosen: list[FlowAt]) -> Iterator[Interval]:
    for at in chosen:
        split = at.result.congestion
        yield at.interval_ms if split is None else Interval(split.low_ms, split.high_ms)


def _counted(key: str, summary: str, count: Callable[[FlowAt], int]) -> Metric:
    return Metric(key, Unit.COUNT, Takes.FLOWS, Slowed.PER_PACKET, _FAULT, summary, from_metrics(_packets(count)))


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
    ),
)
