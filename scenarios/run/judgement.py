"""Compute metrics and verdict from the observations of a run.

Imports numpy, so the runner loads it after the measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hpn.failover.analysis.causes import causes
from hpn.failover.analysis.cost import cost
from hpn.failover.analysis.hostload import is_starved
from hpn.failover.analysis.job import JobFacts, JobMetrics, SpanTime
from hpn.failover.analysis.location import Location
from hpn.failover.analysis.lone_ports import lone_port_waits
from hpn.failover.analysis.metrics.analyse import analyse_traces
from hpn.failover.analysis.metrics.doubts import NOTHING_SENT
from hpn.failover.analysis.metrics.goodput import unsent
from hpn.failover.analysis.metrics.job import job_metrics, timeline
from hpn.failover.analysis.metrics.series import message_series, stream_series
from hpn.failover.analysis.metrics.stamps import stamp_series
from hpn.failover.analysis.metrics.trace import Traces, build_traces
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.moved_back import Connections, strays
from hpn.failover.analysis.ports import PortMetrics, port_metrics
from hpn.failover.analysis.retry_deaths import retry_notes
from hpn.failover.analysis.series import bins_of
from hpn.failover.analysis.short_routes import short_route_notes
from hpn.failover.locating.answer import located_by, location_of
from hpn.failover.locating.drains import drains_of
from hpn.failover.locating.methods import METHODS
from hpn.failover.locating.recorded import Recorded
from hpn.failover.locating.stretches import stretches
from hpn.results.judge.verdict import Verdict
from hpn.results.run.figures import Timelines
from hpn.results.run.series import RunSeries
from hpn.scenarios.expect.evidence import RunFacts
from hpn.scenarios.expect.verdict import judge
from hpn.scenarios.run.measurement import Facts, JobRecords, Measurement

_METHOD = next(iter(METHODS))


def traces_of(measured: Measurement) -> Traces:
    """Return the fate of every packet of the run's streams."""
    return build_traces(
        measured.facts.streams,
        measured.sent,
        measured.received,
        measured.facts.settings,
        by_arrival=measured.facts.buffers is not None,
    )


def judge_measured(measured: Measurement, traces: Traces | None = None) -> tuple[DrillMetrics, Verdict]:
    """Return metrics and verdict of a measurement, new or stored: equal input gives equal bytes.

    ``traces``: the result of ``traces_of``, if the caller has it.
    """
    facts = measured.facts
    traces = traces or traces_of(measured)
    metrics = analyse_traces(
        traces,
        measured.events,
        facts.edges,
        (facts.start_ns, facts.healthy_end_ns),
        facts.settings,
        facts.host,
        facts.offered,
        path_control=facts.path_control,
    )
    metrics = replace(metrics, ports=_ports(measured), buffers=facts.buffers, location=_location(measured, traces))
    job, beside = _job(facts, facts.job, measured.job), _job(facts, facts.beside, measured.beside)
    if job is not None:
        of_edges = (doubt for doubt in metrics.inconclusive if doubt != NOTHING_SENT or facts.streams)
        doubts = (*of_edges, *job.doubts, *(() if beside is None else beside.doubts))
        metrics = replace(metrics, job=job, beside=beside, inconclusive=doubts)
    starved = is_starved(facts.host) if facts.host is not None else None
    known = RunFacts(
        host_reasons=(starved,) if starved else (),
        machine_drops=facts.machine_drops,
        state_differences=facts.differences,
        deviations=facts.deviations,
        waits=facts.waits,
        unsent=unsent(traces, facts.edges, facts.settings),
        strays=moved_wrongly(measured, metrics),
    )
    verdict = judge(facts, metrics, known)
    doubt = "Not to be trusted: " if verdict.reasons else ""
    notes = (
        *short_route_notes(measured.events),
        *lone_port_waits(measured.events, facts.edges, facts.end_ns),
        *retry_notes(metrics, facts.streams),
    )
    return metrics, replace(verdict, cost=doubt + cost(metrics, facts.faults), causes=causes(metrics), notes=notes)


def _location(measured: Measurement, traces: Traces) -> Location | None:
    """Return when packets told where each fault is, and what was drained; None if nobody asked."""
    facts, known = measured.facts, measured.facts.known_paths
    if known is None:
        return None
    bins, series = bins_of(facts.start_ns, facts.end_ns), series_of(measured, traces)
    if series.streams is None and series.messages is None:
        return None
    run = Recorded(known, bins, streams=series.streams, messages=series.messages)
    drains = () if run.streams is None else drains_of(measured.events, known.faults, known.ends, run.streams)
    found = located_by(run, run.usual_source, facts.locating or _METHOD)
    return replace(location_of(found), drains=tuple(drains), stretches=tuple(stretches(found)))


def series_of(measured: Measurement, traces: Traces) -> RunSeries:
    """Return the time series of the run's flows and ports."""
    facts, records = measured.facts, measured.job
    bins = bins_of(facts.start_ns, facts.end_ns)
    carried = facts.flows if records is not None and len(records.messages) else ()
    return RunSeries(
        streams=stream_series(traces, bins) if facts.streams else None,
        messages=message_series(records.messages, carried, bins, records.retries) if records and carried else None,
        stamps=None if records is None or records.stamps is None else stamp_series(records.stamps, facts.flows, bins),
        ports=measured.ports,
    )


def timelines_of(measured: Measurement) -> Timelines:
    """Return the timelines of a job's ranks and of the client alongside it; None for one that did not run."""
    facts = measured.facts
    return Timelines(_timeline(facts.job, measured.job), _timeline(facts.beside, measured.beside))


def _timeline(job: JobFacts | None, records: JobRecords | None) -> Iterator[SpanTime] | None:
    return None if job is None or records is None else timeline(job, records.spans)


def moved_wrongly(measured: Measurement, metrics: DrillMetrics) -> tuple[str, ...]:
    """Return the moves that path control made without a reason or did not revert while traffic ran."""
    facts = measured.facts
    dead = {flow.flow for flow in metrics.flows if flow.stopped_at_ns is not None}
    connections = Connections(
        flows={flow.id: flow for flow in facts.flows},
        lags={(host, lag): nic for host, lag, nic in facts.lags},
        refresh_ms=facts.refresh_ms,
        gone=dead.union(facts.edges[-1].absent if facts.edges else ()),
    )
    return strays((event for event in measured.events if event.at_ns <= facts.end_ns), connections, facts.end_ns)


def _job(facts: Facts, job: JobFacts | None, records: JobRecords | None) -> JobMetrics | None:
    """Return the metrics of a job or a client."""
    if job is None or records is None:
        return None
    times = (facts.start_ns, facts.end_ns)
    return job_metrics(job, records.spans, records.messages, facts.edges, times, facts.settings)


def _ports(measured: Measurement) -> PortMetrics | None:
    """Return loads and queues of ports; their balance covers the record before the first fault."""
    if measured.ports is None:
        return None
    facts: Facts = measured.facts
    healthy_ns = min((edge.inject_before_ns for edge in facts.edges), default=facts.end_ns)
    return port_metrics(measured.ports, healthy_ns, facts.end_ns, {flow.dst_nic for flow in facts.flows})
