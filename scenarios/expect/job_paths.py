"""Figures about the paths of a job's multipath queue pairs. Pure."""

from __future__ import annotations

from hpn.failover.analysis.denied import DeniedPath, denied_at
from hpn.failover.analysis.edge import Edge
from hpn.failover.analysis.job import JobMetrics
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.phrases import plain
from hpn.scenarios.expect.figure import NO_EDGE, Figure, edges_of, longest_of
from hpn.scenarios.expect.job_metric import job_metric
from hpn.scenarios.expect.metric import WHOLE_RECORD, Larger, Slowed, Takes, Traffic, Unit
from hpn.scenarios.expect.selection import Selection

ONE_PATH = Figure(None, "its queue pairs take one path at a time: transport is not multipath")


def takes_many(job: JobMetrics) -> bool:
    """Return True if packets of a queue pair took many paths."""
    return any(name.startswith("path_packets") for name in job.summed_counters)


def _bypass(expectation: Selection, metrics: DrillMetrics, job: JobMetrics) -> Figure:
    """Return the longest time from a path's first lost packet to its denial, in round trips known before."""
    if not takes_many(job):
        return ONE_PATH
    edges = edges_of(expectation, metrics)
    if not edges:
        return NO_EDGE
    told = denied_at(job.denied, [edge.edge for edge in edges])
    if not told:
        return Figure(None, "no path was denied of which a packet was lost then, and the round trip known")
    return longest_of([_of_path(edge, each, len(told), job.tick_ms) for edge, each in told])


def _of_path(edge: Edge, denied: DeniedPath, count: int, tick_ms: float) -> Figure:
    where = f"port {denied.port} of {denied.nic}"
    times = f"{plain(denied.ms, 3)} ms, round trip {plain(denied.rtt_ns / 1e6, 3)} ms"
    said = f"{edge.label}: longest of {count:,} denied paths, by {where}: {times}"
    return Figure(denied.round_trips, said, *denied.within(tick_ms))


METRICS = (
    job_metric(
        "bypass",
        Unit.RATIO,
        Takes.EDGES,
        Slowed.NOT,
        "of a multipath queue pair, the longest time from the first packet that a path lost to its denial, in round"
        " trips as its sender had measured them, with its ticks; it carries over to other rates",
        _bypass,
        larger=Larger.WORSE,
        tells=WHOLE_RECORD,
        of=Traffic.JOB,
    ),
)
