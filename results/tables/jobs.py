"""Tables of jobs and clients: iterations, cost of edges, collectives, ranks, NIC counters. Pure.

Changes when a job gets another figure. An iteration cut off by the end of the run is a lower bound: ``high_ms`` is then
empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hpn.failover.analysis.job import JobMetrics
from hpn.failover.analysis.model import EdgeResult
from hpn.results.tables.edges import EDGE, edge_cells
from hpn.results.tables.table import Column, Kind, Row, RunFacts, Table

_PROGRAM = Column("program", Kind.TEXT, "job or client")
_LOW = Column("low_ms", Kind.NUMBER, "the least that it may have been", "ms")
_HIGH = Column("high_ms", Kind.NUMBER, "the most that it may have been; empty where open_ended", "ms")
_RATE = "iterations/s"
_ITERATIONS = (
    _PROGRAM,
    *EDGE,
    Column("number", Kind.COUNT, "from 0; one that is done again has another; empty of the one that the run cut off"),
    Column("begin_ns", Kind.COUNT, "begin of the rank that ended it last, CLOCK_MONOTONIC", "ns"),
    Column("end_ns", Kind.COUNT, "its end", "ns"),
    Column("ms", Kind.NUMBER, "how long it took; a lower bound where open_ended", "ms"),
    _LOW,
    _HIGH,
    Column("open_ended", Kind.FLAG, "true: the run cut it off, the time is a lower bound and high_ms is empty"),
    Column("wrong", Kind.COUNT, "blocks of results that were not what they must be; empty where open_ended"),
)
_STALLS = (
    _PROGRAM,
    *EDGE,
    Column("longest_ms", Kind.NUMBER, "the longest iteration under way in the edge's window; empty without one", "ms"),
    _LOW,
    _HIGH,
    Column("open_ended", Kind.FLAG, "true: it had not ended, the time is a lower bound and high_ms is empty"),
    Column("rate_before", Kind.NUMBER, "before the first edge", _RATE),
    Column("rate_during", Kind.NUMBER, "from the edge to the end of its window", _RATE),
    Column("rate_after", Kind.NUMBER, "in the last part of the window", _RATE),
    Column("lost", Kind.NUMBER, "what rate_before promised and was not done; negative: more was", "iterations"),
    Column("promised", Kind.NUMBER, "what rate_before promises for the window", "iterations"),
    Column("done_low", Kind.NUMBER, "the least that may have been done in the window", "iterations"),
    Column("done_high", Kind.NUMBER, "the most that may have been done in it", "iterations"),
    Column("deaths", Kind.COUNT, "deaths of the job in the window"),
    Column("undone", Kind.COUNT, "iterations of lost that the last checkpoint did not have"),
)
_COLLECTIVES = (
    _PROGRAM,
    Column("label", Kind.TEXT, "name of the collective or block of computing"),
    Column("kind", Kind.TEXT, "all-reduce, compute, ..."),
    Column("size_bytes", Kind.COUNT, "its size; 0 where it has none", "bytes"),
    Column("ranks", Kind.COUNT, "ranks that take part"),
    Column("count", Kind.COUNT, "times that all of them ended it"),
    Column("mean_ms", Kind.NUMBER, "mean time of the slowest rank", "ms"),
    Column("least_ms", Kind.NUMBER, "the shortest", "ms"),
    Column("most_ms", Kind.NUMBER, "the longest", "ms"),
    Column("algbw_bps", Kind.NUMBER, "size / mean time, as nccl-tests has it; 0 without a size", "bit/s"),
    Column("busbw_bps", Kind.NUMBER, "algbw times the factor of its kind; 0 of what is no collective", "bit/s"),
    Column("wrong", Kind.COUNT, "blocks of results that were not what they must be"),
)
_RANKS = (
    Column("rank", Kind.COUNT, "its number"),
    Column("host", Kind.TEXT, "where it was"),
    Column("nic", Kind.TEXT, "its NIC"),
    Column("steps", Kind.COUNT, "steps that it told"),
    Column("ended", Kind.TEXT, "how it ended by itself; empty where the run ended it"),
    Column("ended_at_ns", Kind.COUNT, "when, CLOCK_MONOTONIC; empty where the run ended it", "ns"),
    Column("died", Kind.FLAG, "true: it ended before the run did, its work undone"),
    Column("last_words", Kind.TEXT, "the last line that it printed"),
)
_COUNTERS = (
    _PROGRAM,
    Column("nic", Kind.TEXT, "NIC"),
    Column("counter", Kind.TEXT, "name, as rdma statistic show has it"),
    Column("value", Kind.COUNT, "what it counted in the run"),
)


def _programs(run: RunFacts) -> Iterator[tuple[str, JobMetrics]]:
    """Yield the programs that ran: a job or a client, and possibly a client alongside the job."""
    if run.metrics is None:
        return
    if run.metrics.job is not None:
        yield "job" if run.metrics.job.client is None else "client", run.metrics.job
    if run.metrics.beside is not None:
        yield "client", run.metrics.beside


def _iterations(run: RunFacts) -> Iterator[Row]:
    edges = () if run.metrics is None else run.metrics.edges
    for program, job in _programs(run):
        for each in job.iterations:
            yield {
                "program": program,
                **edge_cells(_met(edges, each.begin_ns, each.end_ns)),
                "number": each.number,
                "begin_ns": each.begin_ns,
                "end_ns": each.end_ns,
                "ms": each.ms,
                **_interval(job, each.ms, open_ended=False),
                "wrong": each.wrong,
            }
        if job.open_ms and not _has_finished(job):
            begin_ns = max((each.end_ns for each in job.iterations), default=0)
            yield {
                "program": program,
                **edge_cells(_met(edges, begin_ns, math.inf)),
                **dict.fromkeys(("number", "begin_ns", "end_ns", "wrong")),
                "ms": job.open_ms,
                **_interval(job, job.open_ms, open_ended=True),
            }


def _met(edges: Sequence[EdgeResult], begin_ns: int, end_ns: float) -> EdgeResult | None:
    """Return the first edge within a period, else the last one before it."""
    before = [each for each in edges if each.edge.inject_before_ns <= begin_ns]
    during = (each for each in edges if begin_ns < each.edge.inject_before_ns < end_ns)
    return next(during, before[-1] if before else None)


def _has_finished(job: JobMetrics) -> bool:
    """Return True if a client finished its work before the run ended, so that nothing was cut off."""
    ranks = () if job.client is None else job.client.facts.ranks
    return any(rank.ended_at_ns is not None and not rank.died for rank in ranks)


def _interval(job: JobMetrics, ms: float, *, open_ended: bool) -> Row:
    """Return the interval: the stamp of either end is late by up to a tick."""
    high_ms = None if open_ended else ms + job.tick_ms
    return {"low_ms": max(ms - job.tick_ms, 0.0), "high_ms": high_ms, "open_ended": open_ended}


def _stalls(run: RunFacts) -> Iterator[Row]:
    edges = () if run.metrics is None else run.metrics.edges
    for program, job in _programs(run):
        for result, cost in zip(edges, job.edges, strict=True):
            window = range(result.edge.inject_before_ns, result.edge.window_end_ns)
            none = {"low_ms": None, "high_ms": None, "open_ended": cost.unfinished}
            yield {
                "program": program,
                **edge_cells(result),
                "longest_ms": cost.longest_ms or None,
                **(_interval(job, cost.longest_ms, open_ended=cost.unfinished) if cost.longest_ms else none),
                "rate_before": cost.rate_before,
                "rate_during": cost.rate_during,
                "rate_after": cost.rate_after,
                "lost": cost.lost,
                "promised": cost.during.promised,
                "done_low": cost.during.low,
                "done_high": cost.during.high,
                "deaths": sum(death.at_ns in window for death in job.deaths),
                "undone": cost.undone,
            }


def _collectives(run: RunFacts) -> Iterator[Row]:
    for program, job in _programs(run):
        for span in job.spans:
            yield {"program": program, **{column.name: getattr(span, column.name) for column in _COLLECTIVES[1:]}}


def _ranks(run: RunFacts) -> Iterator[Row]:
    for _, job in _programs(run):
        for rank in () if job.client is None else job.client.facts.ranks:
            yield {
                "rank": rank.rank,
                "host": rank.host,
                "nic": rank.nic,
                "steps": rank.steps,
                "ended": rank.how,
                "ended_at_ns": rank.ended_at_ns,
                "died": rank.died,
                "last_words": rank.last_words,
            }


def _counters(run: RunFacts) -> Iterator[Row]:
    for program, job in _programs(run):
        for nic, counters in job.counters.items():
            for counter, value in counters.items():
                yield {"program": program, "nic": nic, "counter": counter, "value": value}


ITERATIONS = Table(
    "iterations",
    "one row for each iteration of a job or step of a client, with the first edge that met it or the last before it",
    _ITERATIONS,
    _iterations,
)
STALLS = Table("stalls", "one row for each edge: what it cost a job or client in iterations", _STALLS, _stalls)
COLLECTIVES = Table(
    "collectives", "one row for each collective or block of computing, over all iterations", _COLLECTIVES, _collectives
)
RANKS = Table("ranks", "one row for each rank of a client: how far it got and how it ended", _RANKS, _ranks)
COUNTERS = Table("counters", "one row for each NIC and counter of a job or client", _COUNTERS, _counters)
