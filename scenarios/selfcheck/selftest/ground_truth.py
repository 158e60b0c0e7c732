"""Analysis of the self-test: the drills' own analysis of outages of known length. Imports numpy.

Changes when the truth is compared with something else. ``truths`` makes the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hpn.failover.analysis.edges import hit_links, with_windows
from hpn.failover.analysis.hostload import is_starved
from hpn.failover.analysis.metrics.analyse import analyse_traces
from hpn.failover.analysis.metrics.goodput import goodput_series
from hpn.failover.analysis.metrics.trace import FlowTrace, Traces, build_traces
from hpn.failover.analysis.model import QUICK, DrillMetrics, Edge, EdgeKind, FlowEdgeResult
from hpn.results.judge.ground_truth import BIN_MS, GroundTruth, TruthMeasurement
from hpn.scenarios.selfcheck.selftest.exact_loss import DropSpan, Observed
from hpn.scenarios.selfcheck.selftest.sizes import MS, Pause
from hpn.traffic.streams.columns import InFiles
from hpn.traffic.streams.records import RECEIVED, SENT

_AROUND_NS = 20 * MS
_LEAST_DELAY_MS = 0.5
"""Maximum delay of a flow's fastest packet: a few hops of idle links at 200 Mbit/s and as many CPU turns."""
_DARK = 0.9
"""Share of its usual packets below which a bin counts as outage."""


def analyse_truth(observed: Observed) -> GroundTruth:
    """Measure every outage with the drills' own analysis and add the truth."""
    period_ms = max(1e3 / flow.rate_pps for flow in observed.flows)
    tick_ms = observed.tick_ns / MS
    settings = QUICK.for_pacing(period_ms, tick_ms)
    sent = InFiles([Path(path) for path in observed.report.sent_files], SENT)
    received = InFiles([Path(path) for path in observed.report.received_files], RECEIVED)
    traces = build_traces(observed.flows, sent, received, settings)
    healthy = (observed.start_ns, observed.start_ns + observed.healthy_ns)
    metrics = analyse_traces(traces, observed.events, _edges(observed), healthy, settings, observed.host)
    return GroundTruth(
        engine=observed.engine,
        kernel=observed.kernel,
        datapath=observed.datapath,
        tick_ms=tick_ms,
        noise_floor_ms=metrics.noise.noise_floor_ms,
        send_gap_max_ms=metrics.noise.send_gap_max_ms,
        delay_variation_ms=metrics.noise.delay_variation_ms,
        measured=tuple(_all_measured(observed, metrics, traces)),
        noise=tuple(_noise(observed, metrics)),
        wrong=tuple(_wrong(observed, metrics, traces)),
    )


def _edges(observed: Observed) -> tuple[Edge, ...]:
    """Return a failure and a repair for each cut, in order; both directions are one event."""
    links = hit_links(observed.fabric, observed.links)
    edges = []
    for at, cut in enumerate(observed.cuts):
        spans = cut.values()
        put = (min(span.put_before_ns for span in spans), max(span.put_after_ns for span in spans))
        lift = (min(span.lift_before_ns for span in spans), max(span.lift_after_ns for span in spans))
        edges.append(Edge("drop", EdgeKind.FAILURE, at, *put, put[1], links))
        edges.append(Edge("drop", EdgeKind.REPAIR, at, *lift, lift[1], links))
    return with_windows(edges, observed.end_ns)


def _all_measured(observed: Observed, metrics: DrillMetrics, traces: Traces) -> Iterator[TruthMeasurement]:
    for direction, ids in observed.hit.items():
        for flow, trace in zip(metrics.flows, traces, strict=True):
            if flow.flow not in ids:
                continue
            bins = _Bins(trace, observed)
            for cut, pause, result in zip(observed.cuts, observed.pauses, flow.edges[::2], strict=True):
                yield _measured(direction, cut[direction], pause, result, trace, bins, metrics)


def _measured(
    direction: str,
    span: DropSpan,
    pause: Pause | None,
    result: FlowEdgeResult,
    trace: FlowTrace,
    bins: _Bins,
    metrics: DrillMetrics,
) -> TruthMeasurement:
    width_ms = (span.longest_ns - span.shortest_ns) / MS
    claim_ms = result.resolution_ms + metrics.noise.noise_floor_ms + width_ms / 2
    paused = result.send_gap_ms > claim_ms + metrics.settings.pacing_tick_ms
    return TruthMeasurement(
        direction=direction,
        flow=result.name,
        rate_pps=trace.spec.rate_pps,
        true_ms=(span.longest_ns + span.shortest_ns) / 2 / MS,
        width_ms=width_ms,
        plbm_ms=result.outage_plbm_ms,
        tbm_ms=result.outage_tbm_ms,
        bins_ms=bins.dark_ms(span),
        disagree=result.methods_disagree,
        claim_ms=claim_ms,
        send_gap_ms=result.send_gap_ms,
        disturbed=pause is None and (paused or _delay_spread_ms(trace, span) > claim_ms),
        low_ms=result.budget.low_ms,
        high_ms=result.budget.high_ms,
        pause_ms=pause.for_ns / MS if pause is not None else 0.0,
        paused_where=pause.where if pause is not None else "",
    )


def _delay_spread_ms(trace: FlowTrace, span: DropSpan) -> float:
    """Return the delay variation of packets around a drop: a packet is dropped at its arrival, not when it is sent."""
    around = (span.put_before_ns - _AROUND_NS, span.lift_after_ns + _AROUND_NS)
    first, last = np.searchsorted(trace.received_sent_ns, around)
    delays = trace.delay_ns[first:last]
    return float(np.ptp(delays)) / MS if len(delays) else 0.0


class _Bins:
    """Goodput of one flow in bins, as in plots, on a grid that is independent of the faults."""

    def __init__(self, trace: FlowTrace, observed: Observed) -> None:
        self._start_ns = observed.start_ns
        self._goodput = goodput_series([trace], observed.start_ns, observed.end_ns, BIN_MS)["total"]
        healthy = self._goodput[: observed.healthy_ns // int(BIN_MS * MS)]
        self._usual = float(np.median(healthy)) if len(healthy) else 0.0

    def dark_ms(self, span: DropSpan) -> float:
        """Return how long goodput was down around ``span``, looking at most one bin further on either side."""
        first = (span.put_before_ns - self._start_ns) // int(BIN_MS * MS) - 1
        last = (span.lift_after_ns - self._start_ns) // int(BIN_MS * MS) + 2
        return BIN_MS * float(np.count_nonzero(self._goodput[first:last] < _DARK * self._usual))


def _noise(observed: Observed, metrics: DrillMetrics) -> Iterator[str]:
    """Yield disturbances of the whole run by the machine."""
    starved = is_starved(observed.host) if observed.host is not None else None
    if starved:
        yield starved
    if observed.report.machine_drops:
        yield f"this machine itself dropped {observed.report.machine_drops} packets"
    gap_ms, claimed_ms = metrics.noise.send_gap_max_ms, metrics.settings.claimed_resolution_ms
    unplanned = [at for at, pause in enumerate(observed.pauses) if pause is None]
    gaps_ms = (flow.edges[2 * at].send_gap_ms for flow in metrics.flows for at in unplanned)
    paused = max(gaps_ms, default=0.0)
    if max(gap_ms, paused) > claimed_ms:
        yield f"a sender paused {max(gap_ms, paused):.1f} ms, longer than the claimed resolution of {claimed_ms:g} ms"


def _wrong(observed: Observed, metrics: DrillMetrics, traces: Traces) -> Iterator[str]:
    """Yield loss without a drop, contradictory records, and wrong timestamps."""
    hit = frozenset().union(*observed.hit.values())
    for flow in metrics.flows:
        if flow.flow not in hit and flow.lost:
            yield f"{flow.name}: {flow.lost} packets lost, and nothing was dropped on its path"
        strays = [edge for edge in flow.edges[1::2] if edge.outages > edge.in_outage_at_injection]
        if flow.flow in hit and (strays or flow.unexplained_lost):
            count = flow.unexplained_lost + sum(edge.lost for edge in strays)
            yield f"{flow.name}: {count} packets lost while nothing was dropped"
        if flow.unknown or flow.corrupted or flow.duplicated:
            counts = f"{flow.unknown} unknown, {flow.corrupted} corrupted, {flow.duplicated} duplicated packets"
            yield f"{flow.name}: {counts}"
    for trace in traces:
        least_ms = float(trace.delay_ns.min(initial=np.iinfo(np.int64).max)) / MS
        if len(trace.delay_ns) and not 0 <= least_ms <= _LEAST_DELAY_MS:
            yield (
                f"{trace.spec.name}: no packet took less than {least_ms:.3f} ms by its stamps, where the fastest takes"
                f" up to {_LEAST_DELAY_MS:g} ms: send or receive stamps are off"
            )
