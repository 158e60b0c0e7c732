"""Cause of a job's death: what of its queue pair crossed the part that failed. Pure.

Changes when another way of a queue pair can be lost. A queue pair dies without its data or without acknowledgements,
which take a path of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.failover.analysis.edge import Edge, EdgeKind
from hpn.failover.analysis.job import Death, JobMetrics
from hpn.failover.analysis.model import DrillMetrics, EdgeResult


def job_deaths(metrics: DrillMetrics, result: EdgeResult) -> Iterator[str]:
    """Yield a sentence for each death of the job by a queue pair that crossed what failed at this edge."""
    job = metrics.job
    if job is None or result.edge.kind is not EdgeKind.FAILURE:
        return
    flows = _flows(job)
    for death in job.deaths:
        flow = flows.get(death.queue_pair)
        if flow is not None and _failure_of(metrics, death, flow) is result.edge:
            yield f"the job died of queue pair {death.queue_pair}, whose {_what(result.edge, flow)} crossed it"


def _failure_of(metrics: DrillMetrics, death: Death, flow: int) -> Edge | None:
    """Return the last failure before a death that its queue pair crossed; it may have been repaired since."""
    failures = [each.edge for each in metrics.edges if each.edge.kind is EdgeKind.FAILURE]
    before = [edge for edge in failures if edge.inject_before_ns <= death.at_ns]
    return next((edge for edge in reversed(before) if _what(edge, flow)), None)


def _what(edge: Edge, flow: int) -> str:
    """Return what of a queue pair crossed the part that failed; '' if nothing did, or nobody knows."""
    if flow in edge.only_acks_crossed:
        return "acknowledgements alone"
    ways = (("data", edge.crossed), ("acknowledgements", edge.acks_crossed))
    return " and ".join(name for name, crossed in ways if crossed is not None and flow in crossed)


def _flows(job: JobMetrics) -> dict[str, int]:
    """Return the ids of queue pairs by name."""
    return {way.name: way.flow for placement in job.placements for way in placement.ways}
