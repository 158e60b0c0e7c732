"""Absolute rates of a run's job or client, each with its interval: iterations per second, and mean bus bandwidth. Pure.

Changes when another rate of a job is compared. Expectations have iterations in % of the run's own rate before the
fault: of two policies, the slower one may then look better.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.failover.analysis.budget import Interval
from hpn.failover.analysis.job import JobEdge, JobMetrics
from hpn.failover.analysis.model import DrillMetrics

RATE, IN_FAULT, BUSBW = "iterations before the first fault", "iterations during the first fault", "mean busbw"
RATE_OF_RUN = "iterations"
"""Name of the rate in a run without a fault."""
PER_S, BITS = "/s", "bit/s"


def job_figures(run: DrillMetrics) -> Iterator[tuple[str, str, str, float, Interval]]:
    """Yield the rates of one run: 'job' or 'client', figure, unit, value, interval. More is better in all."""
    for job in (run.job, run.beside):
        if job is not None:
            where = "job" if job.client is None else "client"
            yield from ((where, *each) for each in (*_rate(job), *_busbw(job)))


def _rate(job: JobMetrics) -> Iterator[tuple[str, str, float, Interval]]:
    """Yield iterations per second before the first edge and in its window; without edges, those of the whole run."""
    if not job.edges:
        lasted_ms = job.period_ms * (len(job.iterations) - 1)
        off = min(job.tick_ms / max(lasted_ms, job.tick_ms, 1e-6), 0.5)
        yield from _around(RATE_OF_RUN, 1e3 / job.period_ms if job.period_ms else 0.0, off)
    elif job.mean_ms:
        yield from _around(RATE, job.edges[0].rate_before, min(job.edges[0].during.off, 0.5))
        yield from _in_fault(job.edges[0])


def _around(name: str, rate: float, off: float) -> Iterator[tuple[str, str, float, Interval]]:
    if rate > 0:
        yield name, PER_S, rate, Interval(rate / (1 + off), rate / (1 - off))


def _in_fault(edge: JobEdge) -> Iterator[tuple[str, str, float, Interval]]:
    """Yield the rate from the first edge to the next, or to the end of the run: iterations that may have been done."""
    if edge.during.promised and edge.rate_before:
        window_s = edge.during.promised / edge.rate_before
        ends = edge.during.low / window_s, edge.during.high / window_s
        yield (
            IN_FAULT,
            PER_S,
            edge.rate_during,
            Interval(min(ends[0], edge.rate_during), max(ends[1], edge.rate_during)),
        )


def _busbw(job: JobMetrics) -> Iterator[tuple[str, str, float, Interval]]:
    """Yield the bits of all collectives over their time, accurate to a tick at each end; from 0 if the last hangs."""
    timed = [span for span in job.spans if span.busbw_bps and span.count]
    if timed:
        bits = sum(span.busbw_bps * span.mean_ms * span.count for span in timed)
        lasted_ms, ticks_ms = (
            sum(span.mean_ms * span.count for span in timed),
            job.tick_ms * sum(s.count for s in timed),
        )
        low = 0.0 if job.stands else bits / (lasted_ms + ticks_ms)
        yield BUSBW, BITS, bits / lasted_ms, Interval(low, bits / max(lasted_ms - ticks_ms, 1e-6))
