"""Counts: packets lost or impaired, flows with loss or without recovery, failed queue pairs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hpn.failover.analysis.model import DrillMetrics, FlowResult
from hpn.scenarios.expect.choose import NOTHING_SENT, FlowAt, chosen_flows, nothing, stuck, whole_record
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import Figure, so_far
from hpn.scenarios.expect.impaired import packets_impaired
from hpn.scenarios.expect.metric import (
    MODELLED,
    NO_BEFORE,
    PACKETS_ONLY,
    Lack,
    Larger,
    Metric,
    Needs,
    Pauses,
    Slowed,
    Takes,
    Unit,
)
from hpn.scenarios.expect.selection import Selection


def _packets_lost(expectation: Selection, metrics: DrillMetrics) -> Figure:
    return _counting(expectation, metrics, lambda flow: flow.lost + flow.corrupted, lambda at: at.lost)


def _packets_impaired(expectation: Selection, metrics: DrillMetrics) -> Figure:
    counted = _counting(
        expectation,
        metrics,
        lambda flow: flow.lost + flow.corrupted + flow.late,
        lambda at: at.result.impairment.packets,
    )
    flows = whole_record(expectation, metrics)
    if flows is not None:
        return packets_impaired(counted, [edge for flow in flows for edge in flow.edges])
    return packets_impaired(counted, [at.result for at in chosen_flows(expectation, metrics)])


def _flows_with_loss(expectation: Selection, metrics: DrillMetrics) -> Figure:
    return _counting(
        expectation,
        metrics,
        lambda flow: int(flow.lost + flow.corrupted > 0),
        lambda at: at.lost > 0,
        grows=False,
    )


def _flows_unrecovered(expectation: Selection, metrics: DrillMetrics) -> Figure:
    return _at_edges(expectation, metrics, lambda at: at.dead or not at.result.recovered_in_window, grows=False)


def _queue_pair_deaths(expectation: Selection, metrics: DrillMetrics) -> Figure:
    return _counting(
        expectation, metrics, lambda flow: int(flow.stopped_at_ns is not None), lambda at: at.result.stopped_by_error
    )


def _counting(
    expectation: Selection,
    metrics: DrillMetrics,
    of_flow: Callable[[FlowResult], int],
    at_edge: Callable[[FlowAt], int],
    *,
    grows: bool = True,
) -> Figure:
    """Return a count over the whole record or the selected edges; for yes/no values each flow counts once.

    ``grows``: True if it grows until a flow recovers.
    """
    flows = whole_record(expectation, metrics)
    if flows is None:
        return _at_edges(expectation, metrics, at_edge, grows=grows)
    found = _count({flow.name: of_flow(flow) for flow in flows}, sum(flow.sent for flow in flows), expectation)
    return so_far(found) if grows and any(map(stuck, flows)) else found


def _at_edges(
    expectation: Selection, metrics: DrillMetrics, count: Callable[[FlowAt], int], *, grows: bool = True
) -> Figure:
    found: dict[str, int] = {}
    chosen = list(chosen_flows(expectation, metrics))
    for at in chosen:
        more, before = count(at), found.get(at.result.name, 0)
        found[at.result.name] = max(before, more) if isinstance(more, bool) else before + more
    counted = _count(found, sum(at.result.sent for at in chosen), expectation)
    return so_far(counted) if grows and any(at.going_on for at in chosen) else counted


def _count(by_flow: Mapping[str, int], sent: int, expectation: Selection) -> Figure:
    """Return the sum over flows; ``sent``: their packets. Without any there is no figure."""
    if not by_flow:
        return nothing(expectation)
    if not sent and not any(by_flow.values()):
        return NOTHING_SENT
    worst = max(by_flow, key=lambda name: by_flow[name])
    found = sum(n > 0 for n in by_flow.values())
    evidence = f"{worst} and {found - 1} more" if found > 1 else worst if found else f"none of {len(by_flow)} flows"
    return Figure(sum(by_flow.values()), evidence)


_NOTHING = Needs()
_RECORD = {Lack.AFTER: "without an edge it is of the whole record"}
_ONCE = {**NO_BEFORE, Lack.CUT_OFF: "a flow that has not come back counts already"}


def _counted(
    key: str,
    summary: str,
    slowed: Slowed,
    measure: Callable[[Selection, DrillMetrics], Figure],
    needs: Needs = _NOTHING,
    *,
    over_record: bool = True,
    tells: Mapping[Lack, str] = NO_BEFORE,
    unmodelled: str = MODELLED,
) -> Metric:
    measured = from_metrics(measure)
    tells = {**tells, **_RECORD} if over_record else tells
    return Metric(
        key,
        Unit.COUNT,
        Takes.FLOWS,
        slowed,
        needs,
        summary,
        measured,
        over_record=over_record,
        larger=Larger.WORSE,
        tells=tells,
        unmodelled=unmodelled,
    )


PACKETS_LOST = _counted("packets_lost", "", Slowed.PER_PACKET, _packets_lost)
METRICS = (
    PACKETS_LOST,
    _counted(
        "packets_impaired",
        "lost, corrupted or late",
        Slowed.PER_PACKET,
        _packets_impaired,
        unmodelled=PACKETS_ONLY,
    ),
    _counted("flows_with_loss", "", Slowed.PER_QUEUE_PAIR, _flows_with_loss, tells=_ONCE),
    _counted(
        "flows_unrecovered",
        "not back before the next edge",
        Slowed.PER_QUEUE_PAIR,
        _flows_unrecovered,
        Needs(fault=True, pauses=Pauses.SPANNED),
        over_record=False,
        tells=_ONCE,
    ),
    _counted("queue_pair_deaths", "", Slowed.PER_QUEUE_PAIR, _queue_pair_deaths),
)
