"""From what a run observed to metrics and verdict. Imports numpy, so the runner loads it after the measurement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from failover.analysis.hostload import is_starved
from failover.analysis.job import JobMetrics, SpanTime
from failover.analysis.metrics.analyse import analyse
from failover.analysis.metrics.doubts import NOTHING_SENT
from failover.analysis.metrics.job import job_metrics, timeline
from failover.analysis.model import DrillMetrics
from failover.analysis.moved_back import Connections, strays
from failover.analysis.ports import PortMetrics, port_metrics
from results.verdict import Verdict
from scenarios.expect.evidence import RunFacts
from scenarios.expect.verdict import judge
from scenarios.run.measured import Facts, Measured


def judge_measured(measured: Measured) -> tuple[DrillMetrics, Verdict]:
    """Metrics and verdict of what was measured, just now or long ago: equal input gives equal bytes."""
    facts = measured.facts
    metrics = analyse(
        facts.streams,
        measured.sent,
        measured.received,
        measured.events,
        facts.edges,
        (facts.start_ns, facts.healthy_end_ns),
        facts.settings,
        facts.host,
    )
    metrics = replace(metrics, ports=_ports(measured))
    job = _job(measured)
    if job is not None:
        of_edges = (doubt for doubt in metrics.inconclusive if doubt != NOTHING_SENT or facts.streams)
        metrics = replace(metrics, job=job, inconclusive=(*of_edges, *job.doubts))
    starved = is_starved(facts.host) if facts.host is not None else None
    known = RunFacts(
        host_reasons=(starved,) if starved else (),
        machine_drops=facts.machine_drops,
        state_differences=facts.differences,
        deviations=facts.deviations,
        strays=moved_wrongly(measured, metrics),
    )
    return metrics, judge(facts, metrics, known)


def timeline_of(measured: Measured) -> Iterator[SpanTime] | None:
    """When each rank of a job did what; None where no job ran."""
    facts, records = measured.facts, measured.job
    return None if facts.job is None or records is None else timeline(facts.job, records.spans)


def moved_wrongly(measured: Measured, metrics: DrillMetrics) -> tuple[str, ...]:
    """What path control moved without a reason or did not take home, while the traffic ran."""
    facts = measured.facts
    dead = {flow.flow for flow in metrics.flows if flow.stopped_at_ns is not None}
    connections = Connections(
        flows={flow.id: flow for flow in facts.flows},
        lags={(host, lag): nic for host, lag, nic in facts.lags},
        refresh_ms=facts.refresh_ms,
        gone=dead.union(facts.edges[-1].absent if facts.edges else ()),
    )
    return strays((event for event in measured.events if event.at_ns <= facts.end_ns), connections, facts.end_ns)


def _job(measured: Measured) -> JobMetrics | None:
    """What a job did."""
    facts, records = measured.facts, measured.job
    if facts.job is None or records is None:
        return None
    times = (facts.start_ns, facts.end_ns)
    return job_metrics(facts.job, records.spans, records.messages, facts.edges, times, facts.settings)


def _ports(measured: Measured) -> PortMetrics | None:
    """Loads and queues; the balance of ports over the record before the first fault."""
    if measured.ports is None:
        return None
    facts: Facts = measured.facts
    healthy_ns = min((edge.inject_before_ns for edge in facts.edges), default=facts.end_ns)
    return port_metrics(measured.ports, healthy_ns, facts.end_ns, {flow.dst_nic for flow in facts.flows})
