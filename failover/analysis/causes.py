"""Causes of packet loss and of queue pair deaths, edge by edge, in sentences; congestion first. Pure.

Changes when a run can lose packets for another reason. A queue pair's death is explained by the state known at that
time, other loss by the paths at the end of an edge's window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from hpn.failover.analysis.congestion import EdgeCongestion
from hpn.failover.analysis.deaths import NOTICED, TooLate, before_it_was_over, began_at, steps, too_late, unnoticed
from hpn.failover.analysis.job_deaths import job_deaths
from hpn.failover.analysis.model import DrillMetrics, EdgeResult, FlowEdgeResult, FlowResult
from hpn.failover.analysis.offered import NO_PATH, Offered, StablePeriod, overloads
from hpn.failover.analysis.phrases import flows, in_ms, packets, queue_pairs
from hpn.failover.analysis.protocol_events import ProtocolEvent

_MOST_LINKS = 3
_MOST_CAUSES = 12
_BEFORE = "before any fault"

_ACTED: Mapping[ProtocolEvent, str] = {
    ProtocolEvent.BGP_DOWN: "the last BGP session went down",
    ProtocolEvent.BGP_UP: "the last BGP session came up",
    ProtocolEvent.ROUTE_WITHDRAWN: "the last host route left a switch",
    ProtocolEvent.PROGRAMMED: "the data plane of a booted switch got its routes",
    ProtocolEvent.ROUTE_ADDED: "the last host route came to a switch",
    ProtocolEvent.REMAPPED: "the last adapter sent its queue pairs by another port",
}
"""Protocol events that may end loss, in addition to the failover steps, which concern the affected parts only."""

_Where = frozenset[tuple[str, str]]
"""Directed links: name, and the sending node."""


def causes(metrics: DrillMetrics) -> tuple[str, ...]:
    """Return a line for each cause."""
    told: dict[_Where, str] = {}
    found = [*_before(metrics, told), *_held_back(metrics)]
    for result in metrics.edges:
        found += _of_edge(metrics, result, told)
    more = len(found) - _MOST_CAUSES
    return (*found[:_MOST_CAUSES], f"and {more} more causes") if more > 0 else tuple(found)


def _before(metrics: DrillMetrics, told: dict[_Where, str]) -> Iterator[str]:
    """Yield the congestion of the healthy fabric."""
    links = _overloaded(metrics.offered, "", _BEFORE, told)
    if links:
        pfc = "" if metrics.buffers is None else "PFC stops senders there, or "
        yield f"{_BEFORE}: {links}: {pfc}loss there is congestion"


def _held_back(metrics: DrillMetrics) -> Iterator[str]:
    """Yield what waits at hosts that PFC stopped, where nobody knows paths: it counts as lost."""
    if metrics.offered is not None or not any(edge.lost for flow in metrics.flows for edge in flow.edges):
        return
    held = [each for each in metrics.buffers or () if not each.is_switch and each.paused_ns and each.queue_bytes]
    if held:
        most = max(held, key=lambda each: each.queue_bytes)
        yield (
            f"PFC stopped senders: at the end {most.queue_bytes / 1e6:.1f} MB wait at {most.port}, stopped for"
            f" {most.paused_ns / 1e6:,.0f} ms; what waits counts as lost, and a link on its way is overloaded"
        )


def _of_edge(metrics: DrillMetrics, result: EdgeResult, told: dict[_Where, str]) -> Iterator[str]:
    words, congestion = result.edge.words, result.congestion
    if congestion is not None:
        where = _overloaded(metrics.offered, result.edge.label, f"after the {words}", told)
        where = where or f"the same links as {next(reversed(told.values()), _BEFORE)}"  # on their way as it came
        yield (
            f"{words}: {where}: loss {_from_to(congestion)} is congestion"
            f" ({packets(congestion.packets)} of {flows(congestion.flows)})"
        )
    yield from (f"{words}: {cause}" for cause in (*_not_congestion(metrics, result), *job_deaths(metrics, result)))


def _not_congestion(metrics: DrillMetrics, result: EdgeResult) -> Iterator[str]:
    """Yield why packets were lost on failed paths, and why queue pairs died of it."""
    spans = _spans(metrics.offered, result.edge.label)
    last = spans[-1] if spans else StablePeriod(0, 0, "", (), 0)
    pathless = {each.flow: each.why for each in last.pathless}
    marred = {flow for span in spans for flow in span.marred}
    at = metrics.edges.index(result)
    every = [flow.edges[at] for flow in metrics.flows if not _told_before(flow, at)]
    rest = [flow for flow in every if flow.lost + flow.corrupted > (flow.congestion.lost if flow.congestion else 0)]
    by_marred = [flow for flow in rest if flow.flow in marred]
    if by_marred:
        yield f"{flows(len(by_marred))} lost packets on a link that the fault makes lose them"
    late = {each.flow: each for each in too_late(metrics, result)}
    unanswered = {each.flow for each in last.unanswered}
    deaf = {flow.flow for flow in every if flow.flow in late and not flow.lost + flow.corrupted}  # answers were lost
    hurt = unanswered.union(deaf, (flow.flow for flow in rest))
    muted = deaf - unanswered - marred
    lossy = marred | muted
    blind = {number for number in hurt & late.keys() if _nobody_knew(late[number], last, number in lossy)}
    if silent := {number for number in blind & muted if late[number].detect_ms is None}:
        yield f"{queue_pairs(len(silent))} lost no data, but acknowledgements"
    yield from unnoticed([late[number] for number in sorted(blind)])
    every = [flow for flow in every if flow.flow not in blind]
    rest = [flow for flow in rest if flow.flow not in blind and flow.flow not in marred]
    stranded = Counter(pathless[flow.flow] for flow in rest if flow.flow in pathless)
    for why, count in stranded.most_common():
        yield f"{why or NO_PATH}: {flows(count)} lost packets {_until(metrics, at)}"
    for why, count in _unanswered(every, last, pathless).most_common():
        yield f"{why or NO_PATH}: {queue_pairs(count)} died without acknowledgements"
    rest += [flow for flow in every if flow.flow in deaf - unanswered]
    yield from _with_a_path([flow for flow in rest if flow.flow not in pathless], late, result)


def _until(metrics: DrillMetrics, at: int) -> str:
    """Return the end of an edge's window: 'until the repair of cut'."""
    later = metrics.edges[at + 1 : at + 2]
    return f"until the {later[0].edge.words}" if later else "to the end of the run"


def _with_a_path(lossy: list[FlowEdgeResult], late: dict[int, TooLate], result: EdgeResult) -> Iterator[str]:
    """Yield the causes for flows whose paths work at the end."""
    moved = [flow for flow in lossy if _came_back(flow)]
    if moved:
        yield f"{flows(len(moved))} lost packets until failover was over: {_last_step(result, moved)}"
    gone = [flow for flow in lossy if not _came_back(flow)]
    unfinished = {flow.flow: late[flow.flow] for flow in gone if flow.flow in late and late[flow.flow].last is not None}
    yield from before_it_was_over(list(unfinished.values()))
    strange = [flow for flow in gone if flow.flow not in unfinished]
    if strange:
        yield f"{flows(len(strange))} did not come back, and no path tells why"


def _told_before(flow: FlowResult, at: int) -> bool:
    """Return True if a queue pair died of an outage that an earlier edge reports."""
    began = began_at(flow)
    return began is not None and began < at


def _nobody_knew(death: TooLate, last: StablePeriod, is_lossy: bool) -> bool:
    """Return True if a queue pair died because the failure had not been detected yet.

    If no path is left, detection would not have helped. If it was never detected, a link must lose packets.
    """
    if death.detect_ms is None:
        return is_lossy
    reasons = [each.why or NO_PATH for each in (*last.pathless, *last.unanswered) if each.flow == death.flow]
    return death.unnoticed and not any(why.startswith(NO_PATH) for why in reasons)


def _came_back(flow: FlowEdgeResult) -> bool:
    """Return True if failover was over for it, apart from congestion."""
    back = flow.recovered if flow.congestion is None else flow.congestion.over
    return back and not flow.stopped_by_error


def _unanswered(every: list[FlowEdgeResult], span: StablePeriod, pathless: dict[int, str]) -> Counter[str]:
    """Return why acknowledgements of dead queue pairs did not arrive although their data did."""
    unanswered = {each.flow: each.why for each in span.unanswered}
    return Counter(
        unanswered[flow.flow]
        for flow in every
        if flow.stopped_by_error and flow.flow in unanswered and flow.flow not in pathless
    )


def _from_to(congestion: EdgeCongestion) -> str:
    """Return the time of congestion: 'from 243 ms to 2.01 s after it'."""
    if congestion.last_ms <= 0:
        return "up to it"
    if congestion.first_ms <= 0:
        return f"until {in_ms(congestion.last_ms)} after it"
    return f"from {in_ms(congestion.first_ms)} to {in_ms(congestion.last_ms)} after it"


def _spans(offered: Offered | None, label: str) -> list[StablePeriod]:
    return [] if offered is None else [span for span in offered.spans if span.after == label]


def _overloaded(offered: Offered | None, label: str, when: str, told: dict[_Where, str]) -> str:
    """Return 'uplinks of p0.s0.t0.1: 133 % of their rate', the worst first; or a reference to an earlier line in
    ``told``."""
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


def _last_step(result: EdgeResult, moved: Sequence[FlowEdgeResult]) -> str:
    """Return what ended the loss: the last failover step of hosts and switches, or a later event if loss continued."""
    phases = result.phases
    known = steps(phases)
    if not known:
        return "no LAG, route or path control reacted"
    detect = phases.detect.ms
    loss_ms = _last_loss_ms(result, moved)
    early_ms = max(each.early_ms for each in (phases.detect, phases.switch, phases.converge))
    ended = [step for step in known if step[0] + early_ms >= loss_ms]  # actions first, detection last
    if not ended:
        ms, what = max(known)
        noticed = f"; {NOTICED} {in_ms(detect)} after it" if detect is not None else ""
        later = [end for end in _ends(result) if end[0] >= loss_ms]
        if not later:
            return f"{what} {in_ms(ms)} after it, yet they lost packets until {in_ms(loss_ms)}: no event tells why"
        ms, what = min(later)
        return f"{what} {in_ms(ms)} after it{noticed}"
    acted = [step for step in ended if not step[1].startswith(NOTICED)] or ended
    ms, what = min(acted, key=lambda step: step[0]) if loss_ms else max(ended)
    late = f", of which {in_ms(detect)} are detection time" if detect is not None and detect > ms / 2 else ""
    return f"{what} {in_ms(ms)} after it{late}"


def _last_loss_ms(result: EdgeResult, moved: Sequence[FlowEdgeResult]) -> float:
    """Return the time from the injection to the last packet lost to failover, without congestion and later edges."""
    sent = [
        flow.last_loss_at_ns
        for flow in moved
        if flow.congestion is None and flow.recovered_in_window and flow.last_loss_at_ns is not None
    ]
    return (max(sent, default=result.edge.inject_before_ns) - result.edge.inject_before_ns) / 1e6


def _ends(result: EdgeResult) -> Iterator[tuple[float, str]]:
    """Yield the last protocol events in the whole lab: the far end of a link may detect later than the near one."""
    for marked in (each for each in result.marks if each.mark in _ACTED):
        yield (marked.last_ns - result.edge.inject_before_ns) / 1e6, _ACTED[marked.mark]
