"""Answer of one variant: which invariants its run broke, and whether it was the base run until its second fault. Pure.

Changes when exploration asks another question of a run. Invariants are those of campaigns, as far as a run folder tells
them, and the drill's own limits on outages for flows that had a path all the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.model import DrillMetrics, EdgeKind, FlowResult
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.run.folder import RunFolder
from hpn.scenarios.campaign import invariants
from hpn.scenarios.campaign.result import Invariant, Violation
from hpn.scenarios.campaign.survivors import REJOIN_NS, excuse
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import queue_pairs_of
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.outage import WORST_OUTAGE
from hpn.scenarios.expect.selection import At
from hpn.scenarios.explore.course import until
from hpn.scenarios.explore.labstate import LabState
from hpn.scenarios.explore.variant import Base, Variant
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.flows.flow import FlowSpec

_STATE, _MOVES = "state restored", "queue pairs leave for a reason and return"


@dataclass(frozen=True, slots=True)
class Judged:
    """Answer of a run. ``diverged``: how it differed from the base run before its second fault, or ''."""

    violations: tuple[Violation, ...]
    doubts: tuple[str, ...] = ()
    diverged: str = ""
    injected_ns: int = 0  # of the second fault, on the clock of the run

    @property
    def broken(self) -> frozenset[Invariant]:
        """Invariants that did not hold."""
        return frozenset(each.invariant for each in self.violations)


def judge(base: Base, variant: Variant, run: RunFolder) -> Judged:
    """Return the answer of a variant's run. InputError for a damaged run folder."""
    fabric, metrics, verdict = build(variant.drill.topology), run.metrics(), run.verdict()
    flows = queue_pairs_of(variant.drill, fabric)
    found = [
        *_of_verdict(verdict),
        *_of_record(fabric, variant.drill, metrics, run.events(), flows),
        *_outages(base.drill.expectations, fabric, variant.drill, metrics, flows),
    ]
    seen = dict.fromkeys(found)
    return Judged(tuple(seen), verdict.reasons)


def _of_verdict(verdict: Verdict) -> Iterator[Violation]:
    for check in verdict.checks:
        if check.outcome is Outcome.FAIL:
            kind = {_STATE: Invariant.STATE, _MOVES: Invariant.MOVES}.get(check.text, Invariant.CONTROL)
            yield Violation(kind, f"{check.text}: {check.evidence}")


def _of_record(
    fabric: Fabric, drill: Drill, metrics: DrillMetrics, events: Sequence[Event], flows: Sequence[FlowSpec]
) -> Iterator[Violation]:
    edges = [result.edge for result in metrics.edges]
    end_ns = max(edge.window_end_ns for edge in edges)
    yield from invariants.host_routes(fabric, sorted(events, key=lambda e: e.at_ns), edges, end_ns)
    yield from invariants.queue_pairs(drill, metrics, fabric, flows)
    repairs = [edge.inject_after_ns for edge in edges if edge.kind is EdgeKind.REPAIR]
    if repairs and drill.timeline.settle_ns > REJOIN_NS:
        yield from late_losses(metrics, max(repairs) + REJOIN_NS)


def late_losses(metrics: DrillMetrics, since_ns: int) -> Iterator[Violation]:
    """Check that every living flow loses nothing from ``since_ns`` on, which is long after the last repair."""
    for flow in metrics.flows:
        late = [o for o in flow.longest_outages if o.last_loss_at_ns > since_ns]
        if late and flow.stopped_at_ns is None and not _is_replaced(flow):
            lost = sum(outage.packets for outage in late)
            how = "still loses packets" if late[-1].open else f"lost {lost} packets"
            yield Violation(Invariant.SILENCE, f"{flow.name} {how} {REJOIN_NS // 10**9} s after the last repair")
            return


def _is_replaced(flow: FlowResult) -> bool:
    return bool(flow.edges) and not flow.edges[-1].sent


def _outages(
    expectations: Iterable[Expectation], fabric: Fabric, drill: Drill, metrics: DrillMetrics, flows: Sequence[FlowSpec]
) -> Iterator[Violation]:
    """Check the drill's limits on outages for flows that a path was left all the time."""
    by_id = {flow.id: flow for flow in flows}
    excused = {each.flow for each in metrics.flows if each.flow not in by_id}
    excused |= {flow.id for flow in flows if excuse(fabric, drill.timeline.faults, flow)}
    for at, result in enumerate(metrics.edges):
        limit_ms = _limit_ms(expectations, result.edge.kind)
        if limit_ms is None:
            continue
        over = [
            flow
            for flow in metrics.flows
            if flow.flow not in excused and not flow.edges[at].in_outage_at_injection
            if flow.edges[at].budget.low_ms > limit_ms
        ]
        if over:
            worst = max(over, key=lambda flow: flow.edges[at].outage_plbm_ms)
            text = (
                f"{worst.name}: {worst.edges[at].outage_plbm_ms:.0f} ms at {result.edge.label}, limit {limit_ms:g} ms"
            )
            yield Violation(Invariant.OUTAGE, f"{text}, though a path was left")


def _limit_ms(expectations: Iterable[Expectation], kind: EdgeKind) -> float | None:
    """Return the drill's most generous limit on an outage at edges of a kind; None without one."""
    ats = {At.ANY, At.FAILURE if kind is EdgeKind.FAILURE else At.REPAIR}
    found = [e.limit / 1e6 for e in expectations if e.metric is WORST_OUTAGE and e.bound.is_upper and e.edge in ats]
    return max(found, default=None)


_NOT_COMPARED = frozenset({EventKind.PHASE})
"""Events that name the drill."""


def divergence(base: Sequence[Event], own: Sequence[Event], start_ns: int, end_ns: int) -> str:
    """Return the first difference of a run from the base run before ``end_ns``; '' when they are equal.

    The state must be the same at ``start_ns``, and every event from then on, to the byte. How a lab starts may differ
    by some steps of the clock with what a drill needs; traffic starts on a grid of 100 ms, which cancels that.
    """
    if _state(base, start_ns) != _state(own, start_ns):
        return f"at {start_ns} ns: the lab's state as traffic starts is another than in the base run"
    one, other = (
        [e for e in until(events, end_ns) if e.at_ns >= start_ns and e.kind not in _NOT_COMPARED]
        for events in (base, own)
    )
    for mine, its in zip(one, other, strict=False):
        if mine != its:
            return f"at {its.at_ns} ns: {_words(its)}, in the base run {_words(mine)} at {mine.at_ns} ns"
    if len(one) != len(other):
        extra = max(one, other, key=len)[min(len(one), len(other))]
        return f"at {extra.at_ns} ns: {_words(extra)} is in one run only"
    return ""


def _state(events: Sequence[Event], at_ns: int) -> str:
    state = LabState()
    state.hear(until(events, at_ns))
    return state.digest(at_ns, ())


def _words(event: Event) -> str:
    return f"{event.kind} {event.what} of {event.node} {event.subject}".strip()
