"""Result of the model for a terminal and as JSON; each figure is marked as modelled. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median

from rich.console import Group, RenderableType
from rich.text import Text

from hpn.failover.analysis.job import JobEdge, JobMetrics
from hpn.failover.analysis.model import EdgeResult
from hpn.failover.analysis.phrases import plain
from hpn.results.text.checks import checks_table
from hpn.results.text.printable import printable
from hpn.results.text.tables import table
from hpn.results.text.values import milliseconds, rate
from hpn.scenarios.model.answer import Basis, LinkLoad, ModelAnswer
from hpn.scenarios.model.failover_times import Case, FailoverTimes

HOW = "modelled"
_MOST_LINKS = 12
_NONE = "-"


def page(answer: ModelAnswer) -> Group:
    """Return the whole result as tables."""
    return Group(*_parts(answer))


def _parts(answer: ModelAnswer) -> Iterator[RenderableType]:
    outcome = answer.verdict.outcome.value.upper()
    said = f"{outcome} ({HOW})  {answer.drill} on {answer.architecture}, {answer.flows} flows, seed {answer.seed}"
    yield Text(printable(f"{said}; no packet was sent"), "bold")
    yield Text()
    for reason in answer.verdict.reasons:
        yield Text(printable(f"not to be trusted: {reason}"))
    yield Text()
    yield from _edges(answer)
    yield checks_table(answer.verdict.checks, HOW, margins=False)
    if answer.left_out:
        yield Text()
        yield table("not modelled", ("expectation", "why"), [(each.text, each.why) for each in answer.left_out])
    if answer.loads:
        yield Text()
        yield _loads(answer)
    if answer.basis:
        yield Text()
        yield table("drawn from runs of the lab", ("what", ">runs", "made on"), map(_basis, answer.basis))


def _edges(answer: ModelAnswer) -> Iterator[RenderableType]:
    """Yield the effect of each edge on streams or the job."""
    job = answer.metrics.job
    if answer.metrics.edges and job is None:
        columns = ("edge", ">flows hit", ">cut off", ">worst ms", ">range", ">died")
        goodput = (">goodput before", ">during", ">after")
        title = f"outages ({HOW}: drawn from what the lab took) and goodput ({HOW}), bit/s"
        yield table(title, (*columns, *goodput), map(_edge, answer.metrics.edges))
        yield Text()
    if job is not None:
        rows = [_job_edge(result, cost) for result, cost in zip(answer.metrics.edges, job.edges, strict=True)]
        died = f", died after {milliseconds(job.deaths[0].at_ns / 1e6)} ms" if job.deaths else ""
        title = f"iterations ({HOW}): one every {milliseconds(job.period_ms or None)} ms before any fault{died}"
        columns = ("edge", ">longest ms", ">a second before", ">during", ">after", ">lost")
        yield table(title, columns, rows)
        yield Text()


def _job_edge(result: EdgeResult, cost: JobEdge) -> tuple[str, ...]:
    rates = (cost.rate_before, cost.rate_during, cost.rate_after)
    return (result.edge.label, milliseconds(cost.longest_ms), *(plain(each) for each in rates), f"{cost.lost:.1f}")


def _edge(result: EdgeResult) -> tuple[str, ...]:
    low, high = result.worst_outage_interval_ms
    span = f"{milliseconds(low)}..{milliseconds(high)}" if high > low else _NONE
    goodput = result.goodput
    return (
        result.edge.label,
        str(result.flows_hit),
        str(result.flows_lossy),
        milliseconds(result.worst_outage_plbm_ms),
        span,
        str(result.flows_died),
        *(rate(bps) for bps in (goodput.before_bps, goodput.during_bps, goodput.after_bps)),
    )


def _loads(answer: ModelAnswer) -> RenderableType:
    """Return the links with the highest load."""
    spans = ("before", *(f"{result.edge.kind} {result.edge.fault}" for result in answer.metrics.edges))
    chosen = sorted(answer.loads, key=lambda each: -max(each.load))[:_MOST_LINKS]
    rest = len(answer.loads) - len(chosen)
    title = f"load of links ({HOW}), % of their rate, from each edge to the next; the fullest"
    rows = [(each.link, rate(each.rate_bps), *(f"{100 * load:.1f}" for load in each.load)) for each in chosen]
    return table(
        f"{title}, and {rest} more with --json" if rest else title, ("link", ">rate", *(f">{s}" for s in spans)), rows
    )


def _basis(basis: Basis) -> tuple[str, ...]:
    used, like = basis.used, basis.used.conditions
    made = f"{like.architecture}, path control {like.path_control}, LAG {like.lag}, {like.daemon}"
    own = "" if used.same else f": {used.fault} there; the drill's own was not measured"
    return basis.case.text, str(used.runs), made + own


def document(answer: ModelAnswer) -> Mapping[str, object]:
    """Return the result as a JSON document."""
    return {
        "how": HOW,
        "drill": answer.drill,
        "architecture": answer.architecture,
        "seed": answer.seed,
        "lag": answer.lag,
        "flows": answer.flows,
        "outcome": answer.verdict.outcome.value,
        "not_to_be_trusted": list(answer.verdict.reasons),
        "expectations": [{"how": HOW, **asdict(check)} for check in answer.verdict.checks],
        "not_modelled": [asdict(each) for each in answer.left_out],
        "edges": [{"how": HOW, **_edge_document(result)} for result in answer.metrics.edges],
        "job": None if answer.metrics.job is None else _job_document(answer.metrics.job),
        "links": [{"how": HOW, **_link(each)} for each in answer.loads],
        "drawn_from": [{"case": asdict(each.case), **asdict(each.used)} for each in answer.basis],
    }


def _edge_document(result: EdgeResult) -> Mapping[str, object]:
    low, high = result.worst_outage_interval_ms
    return {
        "edge": result.edge.label,
        "flows_hit": result.flows_hit,
        "flows_cut_off": result.flows_lossy,
        "flows_unrecovered": result.flows_unrecovered,
        "flows_died": result.flows_died,
        "worst_outage_ms": result.worst_outage_plbm_ms,
        "worst_outage_low_ms": low,
        "worst_outage_high_ms": high,
        "median_outage_ms": result.median_outage_plbm_ms,
        "goodput": asdict(result.goodput),
    }


def _job_document(job: JobMetrics) -> Mapping[str, object]:
    return {
        "how": HOW,
        "ranks": job.ranks,
        "queue_pairs": job.queue_pairs,
        "mean_ms": job.mean_ms,
        "period_ms": job.period_ms,
        "iterations_ms": [each.ms for each in job.iterations],
        "edges": [asdict(each) for each in job.edges],
        "collectives": [asdict(each) for each in job.spans],
        "deaths": [asdict(each) for each in job.deaths],
    }


def _link(each: LinkLoad) -> Mapping[str, object]:
    return {"link": each.link, "rate_bps": each.rate_bps, "load": each.load}


def measured_table(found: FailoverTimes) -> RenderableType:
    """Return the measured times as a table, case by case."""
    columns = ("measured in the lab", ">runs", ">flows", ">least ms", ">median", ">most")
    return table("times of failovers", columns, [_case(case, found) for case in _cases(found)])


def measured_document(found: FailoverTimes) -> Mapping[str, object]:
    """Return the measured times as a JSON document."""
    return {
        "how": "measured",
        "runs": [asdict(each) for each in found.sources],
        "times": [asdict(e) for e in found.times],
    }


def _cases(found: FailoverTimes) -> Sequence[Case]:
    return list(dict.fromkeys(times.case for times in found.times))


def _case(case: Case, found: FailoverTimes) -> tuple[str, ...]:
    mine = [times for times in found.times if times.case == case]
    ms = [each for times in mine for each in times.ms]
    return (case.text, str(len(mine)), str(len(ms)), *(milliseconds(at) for at in (min(ms), median(ms), max(ms))))
