"""Outages, impairments and receive gaps of the selected flows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.phrases import packets, plain
from hpn.scenarios.expect.choose import NOTHING_SENT, FlowAt, flows_by_edge, no_outage
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import Figure, longest_of, lower_bound, of_figures, rank
from hpn.scenarios.expect.impaired import impaired, receive_gap
from hpn.scenarios.expect.metric import (
    MODELLED,
    NO_BEFORE,
    PACKETS_ONLY,
    Larger,
    Metric,
    Needs,
    Pauses,
    Slowed,
    Takes,
    Unit,
)
from hpn.scenarios.expect.scope import Scope
from hpn.scenarios.expect.selection import Selection


def _worst_outage(expectation: Selection, metrics: DrillMetrics) -> Figure:
    if not metrics.edges:
        return _healthy_outage(expectation.scope, metrics)
    chosen = [at for found in flows_by_edge(expectation, metrics).values() for at in found]
    if not chosen:
        return no_outage(expectation, metrics)
    found = [at.outage for at in chosen]
    worst, _ = max(zip(chosen, found, strict=True), key=lambda each: rank(each[1]))
    return of_figures(found, max, _outage_evidence(worst))


def _healthy_outage(scope: Scope, metrics: DrillMetrics) -> Figure:
    """Return the longest outage of a run without faults, observed or possible between two packets."""
    flows = [flow for flow in metrics.flows if scope.has_flow(flow.src_nic, flow.dst_nic, None) and flow.sent]
    if not flows:
        return NOTHING_SENT
    found = [(outage.plbm_ms, flow.name) for flow in flows for outage in flow.longest_outages]
    worst_ms, name = max(found, default=(0.0, ""))
    clock_ms = metrics.settings.clock_ms
    low = max((outage.certain_ms for flow in flows for outage in flow.longest_outages), default=0.0)
    possible = [max(outage.possible_ms, outage.tbm_ms) for flow in flows for outage in flow.longest_outages]
    high = max([worst_ms, *possible, *(flow.largest_send_gap_ms for flow in flows)])
    dead = [flow for flow in flows if flow.stopped_at_ns is not None]
    if dead:
        return lower_bound(max(low - clock_ms, 0.0), f"{dead[0].name}: its queue pair died", never=True)
    return Figure(worst_ms, name or "no flow lost anything", max(min(low, worst_ms) - clock_ms, 0.0), high + clock_ms)


def _outage_evidence(at: FlowAt) -> str:
    if at.result.stopped_by_error:
        return f"{at.label}: its queue pair died"
    if at.lost == 0 and not at.open_ended and at.result.outage_plbm_ms == 0:
        return f"no flow lost anything at {at.edge.edge.label}"
    back = "" if at.result.recovered else ", never recovered"
    return f"{at.label}: {packets(at.lost)}, by timestamps {plain(at.result.outage_tbm_ms)} ms{back}"


def _outage_p95(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the 95th percentile at the worst edge; flows that never recovered sort above all others."""
    by_edge = flows_by_edge(expectation, metrics)
    if not by_edge:
        return no_outage(expectation, metrics)
    return _of_worst_edge(by_edge, _p95)


def _median_outage(expectation: Selection, metrics: DrillMetrics) -> Figure:
    by_edge = flows_by_edge(expectation, metrics)
    if not by_edge:
        return no_outage(expectation, metrics)
    return _of_worst_edge(by_edge, median)


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[-(-95 * len(values) // 100) - 1]


def _of_worst_edge(by_edge: Mapping[str, Sequence[FlowAt]], statistic: Callable[[Sequence[float]], float]) -> Figure:
    """Return a statistic of the flows of the edge where it is worst."""
    found = {
        label: of_figures([at.outage for at in flows], statistic, f"{len(flows)} flows at {label}")
        for label, flows in by_edge.items()
    }
    return longest_of(list(found.values()))


def _longest(measure: Callable[[Sequence[FlowAt], float], Figure]) -> Callable[[Selection, DrillMetrics], Figure]:
    """Return a measurement of the worst flow among those that may have an outage."""

    def found(expectation: Selection, metrics: DrillMetrics) -> Figure:
        chosen = [at for flows in flows_by_edge(expectation, metrics).values() for at in flows]
        if not chosen:
            return no_outage(expectation, metrics)
        stamps_ms = metrics.noise.delay_variation_ms + metrics.settings.clock_ms
        return measure(chosen, stamps_ms)

    return found


_PERIOD = Needs(period=True, pauses=Pauses.BLIND)
_LATE = Needs(fault=True, period=True, pauses=Pauses.BLIND)


def _outage(
    key: str,
    summary: str,
    measure: Callable[[Selection, DrillMetrics], Figure],
    needs: Needs = _PERIOD,
    unmodelled: str = MODELLED,
) -> Metric:
    figure = from_metrics(measure)
    return Metric(
        key,
        Unit.MS,
        Takes.FLOWS,
        Slowed.STRETCHED,
        needs,
        summary,
        figure,
        tells=NO_BEFORE,
        unmodelled=unmodelled,
        larger=Larger.WORSE,
    )


WORST_OUTAGE = _outage("worst_outage", "the longest outage of a flow: missing packets / rate", _worst_outage)
METRICS = (
    WORST_OUTAGE,
    _outage("median_outage", "over the flows chosen, at the edge where it is worst", _median_outage),
    _outage(
        "outage_p95",
        "the same, 95th percentile by nearest rank: of 16 flows the worst, of 20 the second worst",
        _outage_p95,
    ),
    _outage(
        "worst_impairment",
        "the longest impairment of a flow: packets missing or late / rate",
        _longest(impaired),
        _LATE,
        PACKETS_ONLY,
    ),
    _outage(
        "worst_receive_gap",
        "the longest time between two packets of a flow that arrived, less one period: TBM by receive stamps",
        _longest(receive_gap),
        _LATE,
        PACKETS_ONLY,
    ),
)
