"""From what a run observed to metrics and verdict. Imports numpy, so the runner loads it after the measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from failover.edges import with_windows
from failover.hostload import is_starved
from failover.metrics import analyse
from failover.metrics_trace import read_records
from failover.model import DrillMetrics
from failover.ports import PortMetrics, port_metrics
from results.verdict import Verdict
from scenarios.drill import Drill
from scenarios.verdict import RunFacts, judge
from scenarios.workload import packet_period_ns
from testbed.events import Event
from traffic.records import RECEIVED, SENT

if TYPE_CHECKING:
    from scenarios.runner import Observed


def judge_run(drill: Drill, observed: Observed, events: Sequence[Event], _out: Path) -> tuple[DrillMetrics, Verdict]:
    """Metrics and verdict of one run."""
    healthy_end = observed.start_ns + drill.timeline.healthy_ns
    metrics = analyse(
        observed.flows,
        read_records([Path(path) for path in observed.report.sent_files], SENT),
        read_records([Path(path) for path in observed.report.received_files], RECEIVED),
        events,
        with_windows(observed.edges, observed.end_ns),
        (observed.start_ns, healthy_end),
        drill.profile.settings.for_pacing(packet_period_ns(observed.flows) / 1e6, drill.workload.tick_ns / 1e6),
        observed.host,
    )
    metrics = replace(metrics, ports=_ports(observed))
    starved = is_starved(observed.host) if observed.host is not None else None
    facts = RunFacts(
        host_reasons=(starved,) if starved else (),
        machine_drops=observed.report.machine_drops,
        state_differences=observed.differences,
    )
    return metrics, judge(drill, metrics, facts)


def _ports(observed: Observed) -> PortMetrics | None:
    """Loads and queues; the balance of ports over the record before the first fault."""
    if observed.ports is None:
        return None
    healthy_ns = min((edge.inject_before_ns for edge in observed.edges), default=observed.end_ns)
    return port_metrics(observed.ports, healthy_ns, observed.end_ns, {flow.dst_nic for flow in observed.flows})
