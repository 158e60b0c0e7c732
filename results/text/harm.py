"""Harm that the faults of a run did, and that a pass expects or allows it. Pure.

Changes when a fault can do other harm. Even when expected, the death of eight queue pairs is bad news about the
network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpn.failover.analysis.edge import EdgeKind
from hpn.failover.analysis.job import LEAST_LOST, JobMetrics
from hpn.failover.analysis.model import DrillMetrics, EdgeResult
from hpn.failover.analysis.phrases import packets, queue_pairs
from hpn.results.judge.verdict import Outcome, Verdict

EXPECTED = "as the drill expects or allows"


def harm(metrics: DrillMetrics) -> Iterator[str]:
    """Yield what the faults took, one line each."""
    for kind in EdgeKind:
        yield from _taken([edge for edge in metrics.edges if edge.edge.kind is kind], kind)
    never = max((edge.flows_unrecovered for edge in metrics.edges), default=0)
    if never:
        yield f"{never} flow{'s' * (never != 1)} had not recovered when the run ended"
    if metrics.job is not None:
        yield from _of_job(metrics.job)


def cost_told(verdict: Verdict, metrics: DrillMetrics | None) -> str:
    """Return the cost of a run; a pass that did harm adds that the drill expects or allows it."""
    expected = verdict.outcome is Outcome.PASS and metrics is not None and any(harm(metrics))
    return f"{verdict.cost} {EXPECTED.capitalize()}." if verdict.cost and expected else verdict.cost


def _of_job(job: JobMetrics) -> Iterator[str]:
    if job.deaths:
        again = sum(death.restarted_at_ns is not None for death in job.deaths)
        yield f"the job died {len(job.deaths)} time{'s' * (len(job.deaths) != 1)} and was started again {again}"
    if job.wrong:
        yield f"{job.wrong} results of collectives were wrong"
    if job.lost >= LEAST_LOST:
        yield f"the time of {'at least ' * job.goes_on_losing}{job.lost:.1f} iterations was lost"


def _taken(edges: Sequence[EdgeResult], kind: EdgeKind) -> Iterator[str]:
    """Yield the cost of all failures, or all repairs, to streams."""
    when = f"at the {kind}{'s' * (len(edges) != 1)}"
    if died := sum(edge.flows_died for edge in edges):
        yield f"{queue_pairs(died)} died {when}"
    if lost := sum(edge.lost for edge in edges):
        yield f"{packets(lost)} {'was' if lost == 1 else 'were'} lost {when}"
