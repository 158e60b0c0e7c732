"""Judges of the paper's claims about jobs whose only link is away for a while. Pure.

``scenarios.paper.gains`` compares two networks with the same work.
"""

from __future__ import annotations

from hpn.failover.analysis.job import JobMetrics
from hpn.failover.analysis.model import DrillMetrics
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.testbed.errors import MachineError


def job_of(metrics: DrillMetrics) -> JobMetrics:
    """Return the metrics of the job. MachineError for a drill without one."""
    if metrics.job is None:
        raise MachineError("the claim is about a job, and the drill ran none")
    return metrics.job


def compute_ms_of(job: JobMetrics) -> float:
    """Return the compute time of an iteration in ms, from the spans of its passes; 0 for a collective."""
    return sum(span.mean_ms for span in job.spans if span.kind == "compute")


def _goes_on(job: JobMetrics) -> bool:
    return not job.deaths and job.edges[-1].rate_after > 0


def _went_on(job: JobMetrics) -> str:
    """Return the outcome of a job as text."""
    if job.deaths:
        return "dead"
    if not _goes_on(job):
        return "stands still"
    return f"goes on, its longest iteration {max(each.ms for each in job.iterations) / 1000:.1f} s"


def short_outage_job(found: ClaimEvidence) -> Finding:
    """Judge single-ToR, repaired within a minute: a job with NCCL's own timers."""
    told, short = job_of(found.drills["job-outage-60s"]), job_of(found.drills["job-outage-25s"])
    text = f"{_went_on(told)}; repaired after 25 s: {_went_on(short)}"
    return Finding(text, _goes_on(told))


def long_outage_job(found: ClaimEvidence) -> Finding:
    """Judge single-ToR, repaired after two minutes: a job with NCCL's own timers."""
    told = job_of(found.drills["job-outage-120s"])
    return Finding(_went_on(told), bool(told.deaths))
