"""Tables of a job: duration of each collective in the style of nccl-tests, and cost of each edge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from hpn.failover.analysis.client import ClientFacts, RankEnd
from hpn.failover.analysis.job import Death, JobEdge, JobMetrics, SpanResult
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.phrases import number, plain
from hpn.failover.analysis.placement import Placement, TierSpread
from hpn.results.text.bounds import at_least
from hpn.results.text.tables import table
from hpn.results.text.values import rate

ON_LINKS = "queue pairs on links, by true paths; imbalance is most / mean, fairness Jain's"
_OF_RANKS = (">rank", "NIC", ">steps", "ended")
OF_LINKS = ("when", "tier", ">links", ">mean", ">most", "on", ">imbalance", ">fairness", ">polarisation")
"""Columns of ``placement_rows``."""


def job_parts(metrics: DrillMetrics, job: JobMetrics) -> Iterator[RenderableType]:
    """Yield all tables and lines of a job, in reading order."""
    labels = [result.edge.label for result in metrics.edges]
    if labels:
        columns = ("edge", ">iterations/s before", ">during", ">after", ">lost", ">longest ms")
        edges = [_edge(label, cost) for label, cost in zip(labels, job.edges, strict=True)]
        whose = " of the client" if job is metrics.beside else ""
        yield table(f"iterations of all ranks{whose}", columns, edges)
        yield Text()
    if job.spans:
        heads = ("span", ">size B", ">ranks", ">times", ">mean ms", ">least", ">most", ">algbw", ">busbw", ">wrong")
        what = "collectives of the client" if job is metrics.beside else "collectives and computing"
        yield table(f"{what}: the slowest rank's time; bit/s", heads, [_span(span) for span in job.spans])
        yield Text()
    if job.client is not None:
        yield table("ranks of the client", _OF_RANKS, [_rank(rank) for rank in job.client.facts.ranks], keys=2)
        yield Text()
        yield from map(Text, _last_words(job.client.facts.ranks))
        yield from map(Text, _client_lines(job, job.client.facts))
        return
    if rows := placement_rows(job):
        yield table(ON_LINKS, OF_LINKS, rows, keys=2)
        yield Text()
    yield from map(Text, _lines(job))


def _rank(rank: RankEnd) -> tuple[str, ...]:
    ended = rank.how if rank.how else "with the run"
    return (str(rank.rank), rank.nic, str(rank.steps), f"{ended} (died)" if rank.died else ended)


def _last_words(ranks: Sequence[RankEnd]) -> Iterator[str]:
    """Yield the last output of ranks that ended early or reported no step; the tables cover all other ranks."""
    found: dict[str, list[int]] = {}
    for rank in ranks:
        if rank.how or not rank.steps:
            found.setdefault(rank.last_words, []).append(rank.rank)
    for words, of in found.items():
        yield f"last words of rank{'s' * (len(of) > 1)} {', '.join(map(str, of))}: {words}"


def _client_lines(job: JobMetrics, client: ClientFacts) -> Iterator[str]:
    mean = _how_often(job)
    told = f"{len(client.ranks)} ranks, {client.reporting} of which tell steps"
    yield f"client {client.key}: {told}, {len(job.iterations)} steps done by all of these{mean}"
    yield from (f"the client died: {death.queue_pair}" for death in job.deaths)
    if client.misread:
        yield f"lines that were to be steps and are none: {client.misread}, first {client.first_misread}"
    when = "told by the client itself" if client.told_times else "those at which its lines came"
    yield f"times of steps are {when}, good to {job.tick_ms:g} ms; what each rank printed is in clients/ of the run"


def _how_often(job: JobMetrics) -> str:
    """Return the iteration period before the first edge; for a single iteration its duration."""
    when = " before the first edge" if job.edges else ""
    if job.period_ms:
        return f", one every {plain(job.period_ms, 5)} ms{when}"
    mean = plain(job.mean_ms, 5)
    return f", one of {mean} ms{when}" if job.mean_ms else ""


def placement_rows(job: JobMetrics) -> list[tuple[str, ...]]:
    """Return the load of queue pairs on each tier's links: initially, and after each edge that changed it."""
    return [_tier(at, tier) for at in _changed(job.placements) for tier in at.tiers]


def _changed(placements: Sequence[Placement]) -> Iterator[Placement]:
    """Yield the placements that differ from the previous one."""
    before: Placement | None = None
    for at in placements:
        if before is None or at.tiers != before.tiers:
            yield at
        before = at


def _tier(at: Placement, tier: TierSpread) -> tuple[str, ...]:
    figures = (plain(tier.crossings / tier.links), str(tier.most), tier.busiest)
    alike = "-" if tier.polarisation is None else f"{tier.polarisation:.3f}"
    lost = f" ({at.dropped} dropped)" if at.dropped else ""
    return (
        at.when + lost,
        tier.tier,
        str(tier.links),
        *figures,
        f"{tier.imbalance:.3f}",
        f"{tier.fairness:.3f}",
        alike,
    )


def _edge(label: str, cost: JobEdge) -> tuple[str, ...]:
    longest = at_least(plain(cost.longest_ms, 4), open_ended=cost.unfinished) if cost.longest_ms else "-"
    rates = [number(each) for each in (cost.rate_before, cost.rate_during, cost.rate_after)]
    return (label, *rates, f"{cost.lost:.2f}", longest)


def _span(span: SpanResult) -> tuple[str, ...]:
    bandwidths = [rate(float(f"{bps:.4g}")) if bps else "-" for bps in (span.algbw_bps, span.busbw_bps)]
    times = [plain(ms, 5) for ms in (span.mean_ms, span.least_ms, span.most_ms)]
    sizes = (str(span.size_bytes or "-"), str(span.ranks or "-"), str(span.count))
    return (span.label, *sizes, *times, *bandwidths, str(span.wrong))


def _death(death: Death) -> str:
    """Return the cause and the cost of a job's death."""
    said = f"the job died: {death.cause}"
    if death.undone:
        said += f"; iterations undone, because the last checkpoint does not have them: {death.undone}"
    for each in death.replaced:
        said += f"; {each.host} answered nobody, {each.by} has its ranks now ({', '.join(map(str, each.ranks))})"
    if death.restarted_at_ns is None:
        return said
    still_ms = (death.restarted_at_ns - death.since_ns) / 1e6
    return f"{said}; started again, having done nothing for {plain(still_ms, 5)} ms"


def _lines(job: JobMetrics) -> Iterator[str]:
    mean = _how_often(job)
    mean += f", {plain(job.exposed_ms, 5)} of it communication that no computing hides" if job.exposed_ms else ""
    yield f"job: {job.ranks} ranks, {job.queue_pairs} queue pairs, {len(job.iterations)} iterations{mean}"
    found = job.messages
    if found.count:
        yield (
            f"messages: {found.count:,}, {found.size_bytes:,} bytes in all, each counted once; post to acknowledgement"
            f" {plain(found.p50_ms, 4)} ms (median), {plain(found.p99_ms, 4)} (p99), {plain(found.most_ms, 4)}"
            " (longest)"
        )
    yield f"packets: {job.packets:,} sent, {job.packets_again:,} of them again"
    yield from map(_death, job.deaths)
    shown = ", ".join(f"{name} {count}" for name, count in job.summed_counters.items())
    if shown:
        yield f"counters of all NICs together (of each: hpn inspect counters RUN): {shown}"
    late = f"; the worker held up most stood still for {plain(job.late_pct, 2)} % of the time" if job.late_pct else ""
    yield f"times of a job are stamped at its workers' ticks, every {job.tick_ms:g} ms{late}"
