"""Verdict of a run from its metrics: every expectation judged with margin and evidence. Pure.

Four rules rank above the expectations (DESIGN rules 7 and 8). A starved host or a damaged measurement is neither pass
nor fail. The two methods of measuring an outage must agree. Flows that no fault touches must lose nothing. The healthy
lab must match its fabric, and path control must move the right queue pairs and revert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.phrases import flows, packets, plain
from hpn.results.judge.verdict import Check, Outcome, Verdict, at_most, decide, held, holds
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.figure import Figure, edges_of
from hpn.scenarios.expect.job import WRONG_RESULTS
from hpn.scenarios.expect.job_metric import job_asked
from hpn.scenarios.expect.loss import PACKETS_LOST
from hpn.scenarios.expect.metric import Shape, Unit
from hpn.scenarios.expect.run_metrics import first_of
from hpn.scenarios.expect.selection import Flows


def _limit(expectation: Expectation) -> float:
    """Return the limit in the unit of the figure; a time is divided like the figure, so that equal times stay equal."""
    unit = expectation.metric.unit
    return expectation.limit / 1e6 if unit is Unit.MS else expectation.limit * (100.0 if unit is Unit.SHARE else 1.0)


class Expecting(Protocol):
    """A drill, or what is kept of one."""

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Expectations for its runs."""


def judge(drill: Expecting, metrics: DrillMetrics, facts: RunFacts) -> Verdict:
    """Return the verdict of one run of ``drill``."""
    checks = [judge_expectation(expectation, Evidence(metrics, facts)) for expectation in drill.expectations]
    checks += list(_control_group(drill, metrics, tuple(checks)))
    checks += list(_never_asked(facts))
    return decide(checks, list(dict.fromkeys((*facts.host_reasons, *_doubts(metrics, facts)))))


def judge_expectation(expectation: Expectation, evidence: Evidence) -> Check:
    """Judge one expectation of a run."""
    figure = expectation.metric.measure(expectation, evidence)
    if expectation.metric.shape is Shape.YES_NO:
        kept = None if figure.value is None else bool(figure.value) == bool(expectation.limit)
        return holds(expectation.text, kept, evidence=figure.evidence)
    return _held_up(_against_limit(expectation, figure), expectation, evidence)


def _against_limit(expectation: Expectation, figure: Figure) -> Check:
    """Compare the figure and its interval with the limit."""
    return held(
        Check(
            expectation.text,
            Outcome.INCONCLUSIVE,
            figure.value,
            _limit(expectation),
            unit=expectation.metric.unit.value,
            low=figure.low,
            high=figure.high,
            evidence=figure.evidence,
            bound=expectation.bound.value,
            open_ended=figure.open_ended,
            over=expectation.over,
            never=figure.never,
            more_is_worse=expectation.metric.larger.is_worse(is_upper=expectation.bound.is_upper),
        )
    )


def _held_up(check: Check, expectation: Expectation, evidence: Evidence) -> Check:
    """Make a failed upper time limit inconclusive if CPU waits of the lab's processes can explain the excess."""
    of_time = expectation.metric.unit is Unit.MS and expectation.bound.is_upper
    too_long = check.outcome is Outcome.FAIL and of_time and not check.open_ended
    if not too_long or check.measured is None or check.low is None:
        return check
    since = [result.edge.inject_before_ns for result in edges_of(expectation, evidence.metrics)]
    lasted_ns = round(check.measured * 1e6)
    waited_ms = max((evidence.facts.waits.most_ms(at_ns, at_ns + lasted_ns) for at_ns in since), default=0.0)
    reason = f"{check.evidence}; meanwhile the lab's own processes waited for a CPU, {plain(waited_ms)} ms in all"
    low = max(check.low - waited_ms, 0.0)
    without = _against_limit(expectation, Figure(check.measured, reason, low, check.high))
    return check if without.outcome is Outcome.FAIL else without


def _never_asked(facts: RunFacts) -> Iterator[Check]:
    """Check rules that hold in every drill; they appear only when they fail."""
    if facts.deviations:
        yield holds("the lab as the fabric decides, before any fault", False, evidence=first_of(facts.deviations))
    if facts.strays:
        yield holds("queue pairs leave for a reason and return", False, evidence=first_of(facts.strays))


def _control_group(drill: Expecting, metrics: DrillMetrics, checks: Sequence[Check]) -> Iterator[Check]:
    """Check that flows no fault touches lose nothing, and that no flow loses before the first fault.

    ``checks`` are those of the expectations. One of them may already cover this; a check of some flows says nothing
    about the rest.
    """
    asked_of = [job_asked(each, metrics) for each in drill.expectations if each.metric is WRONG_RESULTS]
    for job in (metrics.job, metrics.beside):
        if job is not None and job.wrong and not any(each is job for each in asked_of):
            yield _harm(f"wrong results{' of the client' * (job is metrics.beside)} at most 0", job.wrong, 0)
    if not metrics.edges or not metrics.has_streams:
        return
    asked = [
        check
        for check, e in zip(checks, drill.expectations, strict=True)
        if e.metric is PACKETS_LOST and e.flows is Flows.OTHERS
    ]
    edges = [edge for edge in metrics.edges if not edge.edge.control_exempt]
    lost = sum(edge.control_lost for edge in edges)
    others = max((sum(each.control for each in metrics.flows_at(edge)) for edge in edges), default=0)
    if others and (not asked or (lost and all(check.outcome is not Outcome.FAIL for check in asked))):
        worst = max(edges, key=lambda edge: edge.control_lost)
        where = f"most at {worst.edge.label}" if lost else f"{flows(others)} that no fault touches"
        yield _harm("packets lost of other flows at most 0 (control group)", lost, 0, evidence=where)
    if metrics.unexplained_lost:
        names = [flow.name for flow in metrics.flows if flow.unexplained_lost]
        yield _harm("packets lost outside fault windows at most 0", metrics.unexplained_lost, 0, evidence=names[0])


def _harm(text: str, count: int, most: int, *, evidence: str = "") -> Check:
    return replace(at_most(text, count, most, evidence=evidence), more_is_worse=True)


def _doubts(metrics: DrillMetrics, facts: RunFacts) -> Iterator[str]:
    """Yield reasons for an inconclusive run.

    Loss without a fault counts against the fabric (a check), unless the machine dropped packets.
    """
    if facts.machine_drops:
        yield f"the machine itself dropped {packets(facts.machine_drops)}: loss figures are not the fabric's"
        yield from metrics.unexplained
    yield from metrics.inconclusive
