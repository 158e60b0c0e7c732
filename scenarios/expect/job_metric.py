"""Common parts of figures about a job: whose job, its edges, and the definition of such a metric. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hpn.failover.analysis.job import JobEdge, JobMetrics
from hpn.failover.analysis.model import DrillMetrics, EdgeResult
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import Figure, edges_of
from hpn.scenarios.expect.metric import (
    NOT_MODELLED,
    NOWHERE,
    Lack,
    Larger,
    Metric,
    Needs,
    Shape,
    Slowed,
    Takes,
    Traffic,
    Unit,
)
from hpn.scenarios.expect.selection import At, Selection, Whose

_NO_JOB = Figure(None, "the run had no job")
_NO_CLIENT = Figure(None, "no client ran beside a job")
Measure = Callable[[Selection, DrillMetrics, JobMetrics], Figure]


def _of_job(measure: Measure) -> Callable[[Selection, DrillMetrics], Figure]:
    def measured(expectation: Selection, metrics: DrillMetrics) -> Figure:
        job = job_asked(expectation, metrics)
        if job is not None:
            return measure(expectation, metrics, job)
        return _NO_CLIENT if metrics.job is not None else _NO_JOB

    return measured


def job_asked(expectation: Selection, metrics: DrillMetrics) -> JobMetrics | None:
    """Return the job or client that an expectation is about, or None if it did not run."""
    ran = [job for job in (metrics.job, metrics.beside) if job is not None]
    if expectation.whose is None:
        return metrics.job
    of_client = expectation.whose is Whose.CLIENT
    return next((job for job in ran if (job.client is not None) == of_client), None)


def edges_with_costs(
    expectation: Selection, metrics: DrillMetrics, job: JobMetrics
) -> list[tuple[EdgeResult, JobEdge]]:
    """Return the selected edges, each with its cost for the job."""
    chosen = edges_of(expectation, metrics)
    return [(edge, cost) for edge, cost in zip(metrics.edges, job.edges, strict=True) if edge in chosen]


def whole_run(expectation: Selection) -> bool:
    """Return True if an expectation covers the whole run, not single edges."""
    return expectation.edge is At.ANY and expectation.fault is None


def job_metric(
    key: str,
    unit: Unit,
    takes: Takes,
    slowed: Slowed,
    summary: str,
    measure: Measure,
    *,
    larger: Larger,
    fault: bool = False,
    sentence: Callable[[Selection], str] | None = None,
    of: Traffic = Traffic.RANKS,
    tells: Mapping[Lack, str] = NOWHERE,
    unmodelled: str = NOT_MODELLED,
) -> Metric:
    """Return a metric of a job or a client."""
    shape = Shape.YES_NO if unit is Unit.YES else Shape.LIMITS
    needs = Needs(of, fault=fault)
    return Metric(
        key,
        unit,
        takes,
        slowed,
        needs,
        summary,
        from_metrics(_of_job(measure)),
        shape,
        sentence,
        larger=larger,
        tells=tells,
        unmodelled=unmodelled,
    )
