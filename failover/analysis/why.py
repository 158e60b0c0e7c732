"""Why packets were lost and queue pairs died, edge by edge, in sentences; congestion first. Pure.

Changes when a run can lose packets for another reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from failover.analysis.congestion import EdgeCongestion
from failover.analysis.model import DrillMetrics, EdgeResult, FlowEdgeResult, Phases
from failover.analysis.offered import Offered, Span, overloads
from failover.analysis.words import flows, in_ms, packets, queue_pairs

_MOST_LINKS = 3
_MOST_CAUSES = 12
_BEFORE = "before any fault"

_Where = frozenset[tuple[str, str]]
"""Directed links: name, and the node that sends into it."""


def causes(metrics: DrillMetrics) -> tuple[str, ...]:
    """A line for each cause."""
    told: dict[_Where, str] = {}
    found = [*_before(metrics.offered, told)]
    for result in metrics.edges:
        found += _of_edge(metrics, result, told)
    more = len(found) - _MOST_CAUSES
    return (*found[:_MOST_CAUSES], f"and {more} more causes") if more > 0 else tuple(found)


def _before(offered: Offered | None, told: dict[_Where, str]) -> Iterator[str]:
    """Congestion of the healthy fabric."""
    links = _overloaded(offered, "", _BEFORE, told)
    if links:
        yield f"{_BEFORE}: {links}: loss there is congestion"


def _of_edge(metrics: DrillMetrics, result: EdgeResult, told: dict[_Where, str]) -> Iterator[str]:
    words, congestion = result.edge.words, result.congestion
    if congestion is not None:
        where = _overloaded(metrics.offered, result.edge.label, f"after the {words}", told)
        where = where or f"the same links as {next(reversed(told.values()), _BEFORE)}"  # on their way as it came
        yield (
            f"{words}: {where}: loss {_from_to(congestion)} is congestion"
            f" ({packets(congestion.packets)} of {flows(congestion.flows)})"
        )
    spans = _spans(metrics.offered, result.edge.label)
    last = spans[-1] if spans else Span(0, 0, "", (), 0)
    pathless = {each.flow: each.why for each in last.pathless}
    marred = {flow for span in spans for flow in span.marred}
    every = metrics.flows_at(result)
    rest = [flow for flow in every if flow.lost + flow.corrupted > (flow.congestion.lost if flow.congestion else 0)]
    by_marred = [flow for flow in rest if flow.flow in marred]
    if by_marred:
        yield f"{words}: {flows(len(by_marred))} lost packets on a link that the fault makes lose them"
    stranded = Counter(pathless[flow.flow] for flow in rest if flow.flow in pathless and flow.flow not in marred)
    for why, count in stranded.most_common():
        yield f"{words}: {why or 'no path left'}: {flows(count)} lost packets to the end"
    for why, count in _unanswered(every, last, pathless).most_common():
        yield f"{words}: {why or 'no path left'}: {queue_pairs(count)} died without acknowledgements"
    other = [flow for flow in rest if flow.flow not in marred and flow.flow not in pathless]
    moved = [flow for flow in other if _came_back(flow)]
    if moved:
        yield f"{words}: {flows(len(moved))} lost packets until failover was over: {_last_step(result.phases)}"
    if len(moved) < len(other):
        yield f"{words}: {flows(len(other) - len(moved))} did not come back, and no path tells why"


def _came_back(flow: FlowEdgeResult) -> bool:
    """Whether failover was over for it, congestion apart."""
    back = flow.recovered if flow.congestion is None else flow.congestion.over
    return back and not flow.stopped_by_error


def _unanswered(every: tuple[FlowEdgeResult, ...], span: Span, pathless: dict[int, str]) -> Counter[str]:
    """Why acknowledgements of queue pairs that died did not arrive, where their data did."""
    unanswered = {each.flow: each.why for each in span.unanswered}
    return Counter(
        unanswered[flow.flow]
        for flow in every
        if flow.stopped_by_error and flow.flow in unanswered and flow.flow not in pathless
    )


def _from_to(congestion: EdgeCongestion) -> str:
    """'from 243 ms to 2.01 s after it'."""
    if congestion.last_ms <= 0:
        return "up to it"
    if congestion.first_ms <= 0:
        return f"until {in_ms(congestion.last_ms)} after it"
    return f"from {in_ms(congestion.first_ms)} to {in_ms(congestion.last_ms)} after it"


def _spans(offered: Offered | None, label: str) -> list[Span]:
    return [] if offered is None else [span for span in offered.spans if span.after == label]


def _overloaded(offered: Offered | None, label: str, when: str, told: dict[_Where, str]) -> str:
    """'uplinks of p0.s0.t0.1: 133 % of their rate', the worst first; links ``told`` of before, by when that was."""
    if offered is None:
        return ""
    numbers = [at for at, span in enumerate(offered.spans) if span.after == label]
    where = frozenset((link.link, link.sender) for at in numbers for link in offered.overloaded(at))
    if not where:
        return ""
    if where in told:
        return f"the same links as {told[where]}"
    told[where] = when
    links = list(dict.fromkeys(text for at in numbers for text in overloads(offered, at)))
    more = [f"and {len(links) - _MOST_LINKS} more"] if len(links) > _MOST_LINKS else []
    return "; ".join([*links[:_MOST_LINKS], *more])


def _last_step(phases: Phases) -> str:
    """What ended it: the last thing that hosts and switches did."""
    steps = (
        (phases.path_last.ms, "path control moved the last queue pair"),
        (phases.converge.ms, "the last route changed (convergence)"),
        (_switched_ms(phases), "the last LAG changed its ports"),
        (phases.detect.ms, "an end of the link noticed (detection)"),
    )
    known = [(ms, what) for ms, what in steps if ms is not None]
    if not known:
        return "no LAG, route or path control reacted"
    ms, what = max(known)
    detect = phases.detect.ms
    late = f", of which {in_ms(detect)} are detection time" if detect is not None and detect > ms / 2 else ""
    return f"{what} {in_ms(ms)} after it{late}"


def _switched_ms(phases: Phases) -> float | None:
    """Since the injection."""
    detect, switch = phases.detect.ms, phases.switch.ms
    return None if detect is None or switch is None else detect + switch
