"""Judges of the paper's claims about one link and jobs: halts, failures, lost iterations. Pure.

``scenarios.paper.gains`` compares two networks with the same work.
"""

from __future__ import annotations

from hpn.failover.analysis.budget import around
from hpn.failover.analysis.job import JobMetrics
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.phrases import plain
from hpn.results.judge.verdict import at_least
from hpn.scenarios.paper.judges import HALT_MS
from hpn.scenarios.paper.measures import ClaimEvidence, Finding, every
from hpn.testbed.errors import MachineError


def job_of(metrics: DrillMetrics) -> JobMetrics:
    """Return the metrics of the job. MachineError for a drill without one."""
    if metrics.job is None:
        raise MachineError("the claim is about a job, and the drill ran none")
    return metrics.job


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


def flap_job(found: ClaimEvidence) -> Finding:
    """Judge the time that a flapping link without another port adds to the affected iteration."""
    job = job_of(found.drills["job-flap-single-tor"])
    if not _goes_on(job):
        return Finding(_went_on(job), True)
    halt_ms = max(each.ms for each in job.iterations) - job.mean_ms
    low, high = around(halt_ms, job.tick_ms)
    told = at_least("", halt_ms, HALT_MS, low=low, high=high, strict=True)
    return Finding(f"halted {halt_ms:.0f} ms: an iteration takes {job.mean_ms + halt_ms:.0f} ms", every(told.outcome))


def link_down_job(found: ClaimEvidence) -> Finding:
    """Judge the loss in iterations of a job that fills all ports of its hosts and loses one of 16."""
    cost = job_of(found.drills["job-link-down-full-load"]).edges[0]
    lost = 1 - cost.rate_after / cost.rate_before
    text = f"{-lost:.2%} of iterations ({plain(cost.rate_after)}/s, {plain(cost.rate_before)}/s before)"
    return Finding(text, 0.03 <= lost <= 0.08)
