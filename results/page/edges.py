"""Edges of a run: their events and their cost, failures separate from repairs. Pure.

Changes when a page tells more of an edge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.budget import Interval
from hpn.failover.analysis.edge import Edge
from hpn.failover.analysis.job import JobEdge, JobMetrics
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult, Goodput
from hpn.failover.analysis.phrases import flows, plain
from hpn.failover.analysis.scattered import recovery, scattered
from hpn.failover.analysis.unended import is_median_open, median_or_least_ms, worst_ms
from hpn.results.page.axis import time_range, time_text
from hpn.results.page.chain import Chain, chain_of
from hpn.results.page.names import Named, Names
from hpn.results.page.sections import Table
from hpn.results.page.worst_flows import WorstFlows, harmed
from hpn.results.text.bounds import NEVER, at_least
from hpn.results.text.values import milliseconds, rounded_up, scale, span_text
from hpn.testbed.events import Event

_MOST_NICS = 24
_KEPT = 0.995
"""Share of the goodput before the edge; NICs that retained more are not listed."""
_MOST_EDGES = 40
"""Maximum edges with a section of their own; later ones, as in a storm of flaps, have a row each."""


@dataclass(frozen=True, slots=True)
class EdgeSection:
    """One edge: its events and its cost."""

    title: str
    line: str  # its cost, in a few words
    open: bool  # initially; else on a click
    quiet: str  # a sentence instead of a table of zeros; '' if there were losses
    facts: tuple[Table, ...]
    chain: Chain
    harmed: WorstFlows | None
    goodput: Table | None  # None if no streams ran


@dataclass(frozen=True, slots=True)
class Story:
    """The edges of one kind, in order of time: failures and repairs are separate (RFC 6414)."""

    kind: EdgeKind
    title: str
    edges: tuple[EdgeSection, ...]
    later: Table | None
    names: tuple[Named, ...]


def stories(metrics: DrillMetrics, events: Sequence[Event], hosts: frozenset[str], names: Names) -> tuple[Story, ...]:
    """Return the story of the failures, then that of the repairs; a kind without edges is omitted."""
    return tuple(_story(metrics, events, hosts, names, kind) for kind in EdgeKind if _of_kind(metrics, kind))


def _of_kind(metrics: DrillMetrics, kind: EdgeKind) -> list[int]:
    return [at for at, result in enumerate(metrics.edges) if result.edge.kind is kind]


def _story(
    metrics: DrillMetrics, events: Sequence[Event], hosts: frozenset[str], names: Names, kind: EdgeKind
) -> Story:
    places = _of_kind(metrics, kind)
    shown = [at for at in places if at < _MOST_EDGES]
    sections = tuple(_section(metrics, at, events, hosts, names, open_=at == places[0]) for at in shown)
    later = [(metrics.edges[at].edge.label, _line(metrics, at)) for at in places if at >= _MOST_EDGES]
    table = Table(f"Later {kind}s", ("edge", "what it cost"), tuple(later)) if later else None
    title = f"The {kind}{'s' * (len(places) != 1)}"
    return Story(kind, title, sections, table, names.first_of_each_kind(_texts(sections)))


def _texts(sections: Sequence[EdgeSection]) -> Iterator[str]:
    """Yield texts that may contain names, in reading order."""
    for section in sections:
        yield section.title
        yield from (bar.name for bar in section.harmed.bars[:1]) if section.harmed else ()
        yield from (row[0].split()[-1] for row in section.goodput.rows[:2]) if section.goodput else ()


def _section(
    metrics: DrillMetrics, at: int, events: Sequence[Event], hosts: frozenset[str], names: Names, *, open_: bool
) -> EdgeSection:
    result = metrics.edges[at]
    quiet = _quiet(metrics, result) if metrics.has_streams else ""
    return EdgeSection(
        title=_title(metrics, result, names),
        line=_line(metrics, at),
        open=open_,
        quiet=quiet,
        facts=tuple(_costs(metrics, at, streams=metrics.has_streams and not quiet)),
        chain=chain_of(result, events, hosts, recovery(metrics, result)),
        harmed=harmed(metrics.flows_at(result), names),
        goodput=_goodput(result) if metrics.has_streams else None,
    )


def _title(metrics: DrillMetrics, result: EdgeResult, names: Names) -> str:
    """Return 'Failure of cut: link-down of p0.s0.h0.r0.0'; edges of a flap are numbered, including the first."""
    edge = result.edge
    several = any(other.edge.index and other.edge.faults == edge.faults for other in metrics.edges)
    title = f"{edge.kind.capitalize()}{f' {edge.index}' if several else ''} of {' and '.join(edge.faults)}"
    if step := names.step(edge):
        return f"{title}: {step}"
    asked = [words for each in edge.faults if (words := names.fault(each))]
    return f"{title}: {' and '.join(asked)}" if asked else title


def _quiet(metrics: DrillMetrics, result: EdgeResult) -> str:
    """Return a sentence for an edge without any losses; '' otherwise."""
    if metrics.all_dead_before(result):
        return f"{_all_dead(result).capitalize()}."
    if result.lost or result.flows_lossy or result.flows_died or result.flows_unrecovered or result.congestion:
        return ""
    if not result.flows_hit:
        return "No flow was hit, and none lost a packet."
    lost = f"{flows(result.flows_hit)} {'was' if result.flows_hit == 1 else 'were'} hit, and no packet was lost."
    high = result.worst_outage_interval_ms.high
    return f"{lost} An outage of {_rounded_up(high)} or more would have been seen." if high else lost


def _all_dead(result: EdgeResult) -> str:
    every = f"all {flows(result.flows_hit)}" if result.flows_hit > 1 else "the one flow"
    return f"{every} that {'are' if result.flows_hit > 1 else 'is'} hit had died before"


def _line(metrics: DrillMetrics, at: int) -> str:
    result, job = metrics.edges[at], metrics.job
    if metrics.has_streams:
        crossed = result.edge.crossed
        hit = f"{flows(result.flows_hit)} hit" if crossed is None else f"{flows(len(crossed))} crossed it"
        if metrics.all_dead_before(result):
            return _all_dead(result)
        if metrics.worst_began_before(result):
            return f"{hit}, the worst outage began before"
        if (spread := scattered(metrics, (result,))) is not None:
            return f"{hit}, {spread.words}"
        worst = _outage(_worst_ms(metrics, result), result.worst_outage_interval_ms, result.never_over)
        return f"{hit}, worst outage {worst}"
    if job is None:
        return ""
    cost = job.edges[at]
    return f"{_of_before(cost.rate_during, cost.rate_before)}, {max(cost.lost, 0):.2f} iterations lost"


def _costs(metrics: DrillMetrics, at: int, *, streams: bool) -> Iterator[Table]:
    """Yield the cost of an edge to the streams, the job or client, and the client alongside it, if they ran."""
    if streams:
        yield _facts(metrics, metrics.edges[at])
    for who, job in (("the job", metrics.job), ("the client beside it", metrics.beside)):
        if job is not None:
            crossings = () if metrics.has_streams or not job.queue_pairs else _crossings(metrics.edges[at].edge)
            name = "the client" if job.client is not None and who == "the job" else who
            yield _iterations(name, job, job.edges[at], crossings)


def _crossings(edge: Edge) -> Sequence[tuple[str, str]]:
    """Return how many queue pairs crossed what is hit, by their data and by their acknowledgements alone."""
    if edge.crossed is None:
        return ()
    acks = len(edge.only_acks_crossed)
    return (
        ("of these crossed it", f"{len(edge.crossed):,}"),
        *([("of these only acknowledgements crossed it", f"{acks:,}")] if acks else []),
    )


def _iterations(who: str, job: JobMetrics, cost: JobEdge, crossings: Sequence[tuple[str, str]] = ()) -> Table:
    before = cost.rate_before
    longest = f"{milliseconds(cost.longest_ms)} ms" if cost.longest_ms else "none was under way"
    rows = (
        *([("queue pairs", f"{job.queue_pairs:,}"), *crossings] if crossings else []),
        ("before", f"{milliseconds(before)} iterations/s"),
        ("in the whole window", _of_before(cost.rate_during, before)),
        ("when things had settled", _of_before(cost.rate_after, before)),
        ("longest iteration", at_least(longest, open_ended=cost.unfinished)),
        ("mean iteration before", f"{milliseconds(job.mean_ms)} ms"),
        ("lost iterations", f"{max(cost.lost, 0.0):.2f}"),
    )
    return Table(f"What it cost {who}", ("what", ">figure"), rows)


def _of_before(rate_: float, before: float) -> str:
    share = f" ({100 * rate_ / before:.1f} % of before)" if before else ""
    return f"{milliseconds(rate_)} iterations/s{share}"


def _facts(metrics: DrillMetrics, result: EdgeResult) -> Table:
    hit, never = result.flows_hit, result.flows_unrecovered
    counts = (
        ("lost anything", result.flows_lossy),
        ("never came back", never),
        ("queue pairs died", result.flows_died),
    )
    rows = (
        ("flows hit", f"{hit:,}"),
        *_crossings(result.edge),
        *([("had died before", f"{dead:,}")] if (dead := metrics.dead_before(result)) else []),
        *((what, f"{count:,}") for what, count in counts if count),
        ("packets lost", f"{result.lost:,}"),
        *_times(metrics, result),
    )
    return Table("What it cost the streams", ("what", ">figure"), rows)


def _times(metrics: DrillMetrics, result: EdgeResult) -> Iterator[tuple[str, str]]:
    """Yield the outages; for scattered loss, the share lost and the longest hole.

    Only expectations add up holes.
    """
    worst = _outage(_worst_ms(metrics, result), result.worst_outage_interval_ms, result.never_over)
    if (spread := scattered(metrics, (result,))) is not None:
        yield "of what these flows sent", spread.share
        yield "longest hole", spread.hole
        yield "all holes of a flow together, most", worst
        return
    yield "the rest of the outage that began before" if metrics.worst_began_before(result) else "worst outage", worst
    yield from _congested(result)
    median_ms = median_or_least_ms(metrics, result)
    yield "median outage", _outage(median_ms, result.median_outage_interval_ms, is_median_open(result))


def _congested(result: EdgeResult) -> Iterator[tuple[str, str]]:
    found = result.congestion
    if found is not None:
        yield "packets that congestion took", f"{found.packets:,} of {flows(found.flows)}"
        yield "worst outage without them", _outage(found.failover_ms, Interval(found.low_ms, found.high_ms), False)


def _worst_ms(metrics: DrillMetrics, result: EdgeResult) -> float:
    """Return the worst outage; for flows that never recovered the lower bound of the expectation."""
    return max(result.worst_outage_plbm_ms, worst_ms(metrics, result) if result.never_over else 0.0)


def _outage(value_ms: float, within: Interval, never: bool) -> str:
    """Return an outage with its interval. ``never``: it had not ended with the window.

    An outage that was not seen is shorter than the resolution.
    """
    if never:
        return at_least(time_text(value_ms)) if value_ms else NEVER
    if not value_ms:
        return f"< {_rounded_up(within.high)}" if within.high else "none"
    ends = time_range(within.low, within.high)
    if " to " not in ends:  # both ends look the same in three digits
        ends = span_text(within.low, within.high, "ms")
    return f"{time_text(value_ms)} ({ends})"


def _rounded_up(value_ms: float) -> str:
    """Return an upper bound rounded up, as in expectations: rounding down would break it."""
    return f"{milliseconds(rounded_up(value_ms))} ms"


def _goodput(result: EdgeResult) -> Table:
    """Return the goodput of all flows, and of the NICs that retained the smallest share; all in one unit."""
    harmed = sorted(result.nics, key=lambda each: (_kept(each.goodput), each.nic, each.direction))
    count = min(sum(_kept(each.goodput) < _KEPT for each in harmed), _MOST_NICS)
    shown, left_out = harmed[:count], harmed[count:]
    does = {"up": "sent by", "down": "received by"}
    of = [
        ("all flows", result.goodput),
        *((f"{does.get(each.direction, each.direction)} {each.nic}", each.goodput) for each in shown),
    ]
    factor, unit = scale(min((it.before_bps for _, it in of if it.before_bps), default=0.0), "bit/s")
    rows = tuple((name, *_rates(it, factor)) for name, it in of)
    caption = f"Goodput, {unit}{'; the NICs that kept least of it first' if shown else ''}"
    if left_out:
        caption += (
            f"; {len(left_out)} {'more' if shown else 'NICs'} kept at least {100 * _kept(left_out[0].goodput):.1f} %"
        )
    return Table(caption, ("of", ">before", ">during", ">after", ">during, of before"), rows)


def _kept(goodput: Goodput) -> float:
    return goodput.during_bps / goodput.before_bps if goodput.before_bps else math.inf


def _rates(of: Goodput, factor: float) -> tuple[str, str, str, str]:
    share = f"{100 * of.during_bps / of.before_bps:.1f} %" if of.before_bps else "-"
    before, during, after = (plain(bps / factor, 4) for bps in (of.before_bps, of.during_bps, of.after_bps))
    return before, during, after, share
