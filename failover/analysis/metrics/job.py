"""A job's metrics from the records of its workers. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from statistics import median

import numpy as np

from hpn.failover.analysis.client import ClientFacts, ClientMetrics, client_doubts
from hpn.failover.analysis.edge import Edge
from hpn.failover.analysis.job import (
    Death,
    Iteration,
    JobFacts,
    JobMetrics,
    MessageTimes,
    SpanFact,
    SpanResult,
    SpanTime,
)
from hpn.failover.analysis.metrics.jobedge import course_of, job_edge
from hpn.failover.analysis.settings import Settings
from hpn.traffic.collectives.program import ARRIVAL, COMPUTE, MESSAGE
from hpn.traffic.collectives.registry import KINDS
from hpn.traffic.job.restart import RestartPolicy
from hpn.traffic.streams.columns import Records

_Interval = tuple[int, int]


def exposed_ms(facts: JobFacts, spans: Records, iterations: Sequence[Iteration]) -> float:
    """Return the mean over these iterations of the rank with the most exposed time, ms; 0 without any computing."""
    if not any(fact.kind == COMPUTE for of in facts.spans.values() for fact in of) or not iterations:
        return 0.0
    most = dict.fromkeys((each.number for each in iterations), 0)
    for rank, of in facts.spans.items():
        for iteration, ns in _of_rank(of, spans[spans["rank"] == rank]):
            if iteration in most:
                most[iteration] = max(most[iteration], ns)
    return sum(most.values()) / len(most) / 1e6


def _of_rank(facts: Sequence[SpanFact], spans: Records) -> Iterator[tuple[int, int]]:
    """Yield each iteration of one rank with its exposed communication, ns."""
    spans = spans[np.argsort(spans["iteration"], kind="stable")]
    numbers, starts = np.unique(spans["iteration"], return_index=True)
    for number, part in zip(numbers.tolist(), np.split(spans, starts[1:]), strict=True):
        rows = part[["span", "begin_ns", "end_ns"]].tolist()
        busy = [(begin, end) for at, begin, end in rows if facts[at].kind == COMPUTE]
        talking = [(begin, end) for at, begin, end in rows if facts[at].kind in KINDS or facts[at].kind == MESSAGE]
        yield number, _length([*busy, *talking]) - _length(busy)


def _length(intervals: Iterable[_Interval]) -> int:
    """Return the length of the union of these intervals."""
    total = covered = 0
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, covered))
        covered = max(covered, end)
    return total


_PART = 1 << 14  # records as Python numbers at a time: these take ten times the memory


def job_metrics(
    facts: JobFacts,
    spans: Records,
    messages: Records,
    edges: Sequence[Edge],
    times_ns: tuple[int, int],
    settings: Settings,
) -> JobMetrics:
    """Return all metrics of a job that ran between ``times_ns``; records as in ``traffic.jobengine.records``."""
    start_ns, end_ns = times_ns
    spans = spans[np.isin(spans["rank"], list(facts.spans))]
    iterations = _iterations(spans, len(facts.spans))
    deaths = tuple(_deaths(facts, iterations, (start_ns, end_ns)))
    first_ns = min((edge.inject_before_ns for edge in edges), default=end_ns)
    pause_ns = _usual_pause_ns(iterations)
    open_ns = max((each.end_ns + pause_ns for each in iterations), default=start_ns)
    course = course_of(_with_pauses(iterations, pause_ns), iterations, deaths, (start_ns, first_ns, open_ns, end_ns))
    healthy = [each for each in iterations if each.end_ns <= first_ns]
    return JobMetrics(
        ranks=len(facts.spans),
        queue_pairs=facts.queue_pairs,
        tick_ms=facts.tick_ns / 1e6,
        iterations=iterations,
        mean_ms=float(np.mean([each.ms for each in healthy])) if healthy else 0.0,
        period_ms=_period_ms(healthy),
        exposed_ms=exposed_ms(facts, spans, healthy),
        spans=tuple(_span_results(facts, spans)),
        messages=_messages(messages, end_ns),
        edges=tuple(job_edge(edge, course, facts.tick_ns, settings) for edge in edges),
        packets=facts.packets,
        packets_again=facts.packets_again,
        deaths=deaths,
        samples=facts.samples,
        counters=facts.counters,
        wrong=int(spans["wrong"].sum(dtype=np.int64)),
        open_ms=max(0.0, (end_ns - open_ns) / 1e6),
        late_pct=100 * facts.late_ns / max(end_ns - start_ns, 1),
        placements=facts.placements,
        client=_client(facts.client, end_ns, measured=bool(iterations or deaths)),
        phantom_marks=facts.phantom_marks,
        denied=facts.denied,
        checked=_checked(facts, spans) if facts.client is None else facts.client.compared,
    )


def _checked(facts: JobFacts, spans: Records) -> int:
    """Return the number of spans that ended and whose results were checked."""
    checked = [rank << 32 | at for rank, of in facts.spans.items() for at, fact in enumerate(of) if fact.checked]
    return int(np.isin(spans["rank"].astype(np.int64) << 32 | spans["span"], checked).sum())


def _client(facts: ClientFacts | None, end_ns: int, *, measured: bool) -> ClientMetrics | None:
    return None if facts is None else ClientMetrics(facts, tuple(client_doubts(facts, end_ns, measured=measured)))


def timeline(facts: JobFacts, spans: Records) -> Iterator[SpanTime]:
    """Yield the spans of the job's ranks in order of time."""
    spans = spans[np.isin(spans["rank"], list(facts.spans))]
    order = np.lexsort((spans["span"], spans["rank"], spans["end_ns"], spans["begin_ns"]))
    for first in range(0, len(order), _PART):
        for rank, iteration, span, wrong, begin_ns, end_ns in spans[order[first : first + _PART]].tolist():
            fact = facts.spans[rank][span]
            yield SpanTime(rank, iteration, fact.label, fact.kind, begin_ns, end_ns, wrong)


def _iterations(spans: Records, ranks: int) -> tuple[Iteration, ...]:
    """Return the iterations that every rank ended, in order: each is that of the rank which ends it last."""
    numbers, where = np.unique(spans["iteration"], return_inverse=True)
    wrong = np.zeros(len(numbers), np.int64)
    np.add.at(wrong, where, spans["wrong"])
    whole = spans["span"] == 0
    ended = np.bincount(where[whole], minlength=len(numbers))
    of_rank, where = spans[whole], where[whole]
    by_end = np.lexsort((-of_rank["begin_ns"], of_rank["end_ns"], where))  # of equal ends the earliest begin is last
    done = np.flatnonzero(ended)
    last = of_rank[by_end[np.cumsum(ended[done]) - 1]]
    rows = zip(*(each.tolist() for each in (numbers[done], last["begin_ns"], last["end_ns"], wrong[done])), strict=True)
    return tuple(Iteration(*row) for row, count in zip(rows, ended[done].tolist(), strict=True) if count == ranks)


def _deaths(facts: JobFacts, iterations: Sequence[Iteration], times_ns: tuple[int, int]) -> Iterator[Death]:
    """Yield each death with its undone iterations, since the start or since the checkpoint of the death before.

    A death after the end of the run, while it drains, does not count.
    """
    policy = RestartPolicy(0, facts.checkpoint_every) if facts.checkpoint_every else None
    start_ns, end_ns = times_ns
    kept = first = 0
    for fact in facts.deaths:
        if fact.at_ns > end_ns:
            return
        here = [each for each in iterations if each.number >= first and each.end_ns <= fact.at_ns]
        done = kept + len(here)
        kept = done if policy is None else policy.kept(done)
        since_ns = max((each.end_ns for each in here), default=start_ns)
        undone = done - kept
        yield Death(
            *(fact.at_ns, fact.queue_pair, since_ns, fact.restarted_at_ns, undone, fact.replaced),
            final=policy is None,
            silent=fact.silent,
        )
        if fact.restarted_at_ns is not None:
            first, start_ns = fact.iteration, fact.restarted_at_ns


def _span_results(facts: JobFacts, spans: Records) -> Sequence[SpanResult]:
    """Return results by label, in the order of the programs, without the iteration itself."""
    labels: dict[str, SpanFact] = {}
    members: dict[str, list[int]] = {}
    arrivals: dict[str, list[int]] = {}
    for rank, of in facts.spans.items():
        for at, fact in enumerate(of):
            if at and fact.kind == ARRIVAL:
                arrivals.setdefault(fact.label, []).append(rank << 32 | at)
            elif at:
                labels.setdefault(fact.label, fact)
                members.setdefault(fact.label, []).append(rank << 32 | at)
    found = (_span_result(fact, members[label], arrivals.get(label, ()), spans) for label, fact in labels.items())
    return [each for each in found if each is not None]


def _span_result(fact: SpanFact, members: Sequence[int], arrivals: Sequence[int], spans: Records) -> SpanResult | None:
    """Return the result of the timed spans, by rank and number; a message's wrong blocks are found at its receiver."""
    key = spans["rank"].astype(np.int64) << 32 | spans["span"]
    of = spans[np.isin(key, members)]
    numbers, where, counts = np.unique(of["iteration"], return_inverse=True, return_counts=True)
    slowest = np.zeros(len(numbers), np.int64)
    np.maximum.at(slowest, where, of["end_ns"] - of["begin_ns"])
    times = slowest[counts == len(members)] / 1e6
    if not len(times):
        return None
    algbw = fact.size_bytes * 8e3 / float(times.mean()) if times.mean() else 0.0
    return SpanResult(
        label=fact.label,
        kind=fact.kind,
        size_bytes=fact.size_bytes,
        ranks=fact.ranks,
        count=len(times),
        mean_ms=float(times.mean()),
        least_ms=float(times.min()),
        most_ms=float(times.max()),
        algbw_bps=algbw,
        busbw_bps=algbw * _bus_factor(fact),
        wrong=int(spans["wrong"][np.isin(key, [*members, *arrivals])].sum()),
    )


def _bus_factor(fact: SpanFact) -> float:
    """Return the nccl-tests bus-bandwidth factor of a collective; 0 of anything else."""
    return KINDS[fact.kind].bus_factor(fact.ranks) if fact.kind in KINDS else 0.0


def _messages(messages: Records, end_ns: int) -> MessageTimes:
    """Return the times of the messages that were completed by ``end_ns``."""
    there = messages["completed_ns"] <= end_ns
    if not there.any():
        return MessageTimes(0, 0, 0.0, 0.0, 0.0)
    ms = (messages["completed_ns"][there] - messages["posted_ns"][there]) / 1e6
    p50, p99 = np.percentile(ms, (50, 99))
    sizes = messages["bytes"][there]
    _, where = np.unique(messages["flow"][there], return_inverse=True)
    shares = np.bincount(where, sizes.astype(np.float64))
    apart = float(np.abs(shares / shares.mean() - 1).max())
    return MessageTimes(len(ms), int(sizes.sum()), float(p50), float(p99), float(ms.max()), apart)


def _period_ms(iterations: Sequence[Iteration]) -> float:
    """Return the mean time from the end of one iteration to the end of the next; 0 of fewer than two."""
    if len(iterations) < 2:
        return 0.0
    return (iterations[-1].end_ns - iterations[0].end_ns) / (len(iterations) - 1) / 1e6


def _pauses_ns(iterations: Sequence[Iteration]) -> list[int]:
    """Return the pause before each iteration but the first; 0 if it overlapped with the one before."""
    return [max(0, after.begin_ns - before.end_ns) for before, after in pairwise(iterations)]


def _usual_pause_ns(iterations: Sequence[Iteration]) -> int:
    """Return the median pause: a longer one was an outage between two steps, which belongs to neither of them."""
    return round(median(_pauses_ns(iterations) or (0,)))


def _with_pauses(iterations: Sequence[Iteration], usual_ns: int) -> tuple[Iteration, ...]:
    """Return the iterations, each beginning with the usual pause before it.

    Otherwise the count of a program that pauses between steps would depend on the number of pauses in a window.
    """
    counted = (min(pause_ns, usual_ns) for pause_ns in chain((usual_ns,), _pauses_ns(iterations)))
    return tuple(replace(each, begin_ns=each.begin_ns - next(counted)) for each in iterations)
