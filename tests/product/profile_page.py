"""The table fault by profile of hosts as Markdown. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.model import DrillMetrics, EdgeKind
from hpn.results.judge.verdict import Verdict
from hpn.results.run.manifest import Manifest
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.outage import WORST_OUTAGE
from hpn.scenarios.expect.selection import At, Bound, Flows
from hpn.scenarios.expect.verdict import judge_expectation
from hpn.testbed.fabric.profiles import PROFILES
from tests.product.profile_cells import FAULTS, Trial
from tests.product.table_notes import doubted, facts

TOLD = """\
# What faults cost hosts of each profile

Written by `make profile-table`; [the profiles](architectures.md#hosts-profile). A fault is *noticed* after that time.
*Sent*, *got* and *repair* are the longest outages of what the hit NIC sent and got, and of both at the repair. Below
1 ms is 0. *Dead*: queue pairs out of retries after 34 s; their outages end with the fault. Ranges are over phases.
"""
_NEGLIGIBLE_MS = 1.0
_FIGURES = (("noticed", "noticed_ms"), ("sent", "sent_ms"), ("got", "received_ms"), ("repair", "repair_ms"))


@dataclass(frozen=True, slots=True)
class Cost:
    """What one fault cost; outages in ms, None where no flow was hit so."""

    noticed_ms: float | None
    sent_ms: float | None
    received_ms: float | None
    repair_ms: float | None
    dead: int


@dataclass(frozen=True, slots=True)
class Made:
    """A run of the table."""

    trial: Trial
    manifest: Manifest
    verdict: Verdict
    cost: Cost


def cost_of(metrics: DrillMetrics) -> Cost:
    """Return a run's figures, as a drill's expectations would have them."""
    failures = [edge for edge in metrics.edges if edge.edge.kind is EdgeKind.FAILURE]
    dead = sum(edge.flows_died for edge in failures)
    return Cost(
        failures[0].phases.detect.ms,
        _worst(metrics, At.FAILURE, Flows.SENDER),
        _worst(metrics, At.FAILURE, Flows.RECEIVER),
        _worst(metrics, At.REPAIR, Flows.HIT),
        dead,
    )


def _worst(metrics: DrillMetrics, edge: At, flows: Flows) -> float | None:
    asked = Expectation(WORST_OUTAGE, Bound.BELOW, 1e15, flows=flows, edge=edge)
    return judge_expectation(asked, Evidence(metrics, RunFacts())).measured


def page(runs: Sequence[Made]) -> str:
    """Return the page; a fault that was not tried under every profile is left out."""
    return "\n".join((TOLD, *facts(runs), "", *_rows(runs), *doubted(runs))) + "\n"


def _rows(runs: Sequence[Made]) -> Iterator[str]:
    heads = ("fault", "hosts", *(what for what, _ in _FIGURES), "dead")
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for fault in FAULTS:
        costs = {profile: [each.cost for each in runs if each.trial == Trial(fault, profile)] for profile in PROFILES}
        if all(costs.values()):
            yield from (f"| {fault.title} | {profile} | {' | '.join(_cells(costs[profile]))} |" for profile in costs)


def _cells(costs: Sequence[Cost]) -> Iterator[str]:
    """Yield what a fault cost in these runs, figure by figure."""
    for _, key in _FIGURES:
        found = [value for cost in costs if (value := getattr(cost, key)) is not None]
        yield _span(found) if found and max(found) >= _NEGLIGIBLE_MS else "0"
    yield str(max(cost.dead for cost in costs))


def _span(found: Sequence[float]) -> str:
    """'93 ms', '1.9-2.4 s'."""
    unit, times, form = ("s", 1e-3, ".1f") if max(found) >= 1000 else ("ms", 1.0, ".0f")
    shown = dict.fromkeys(format(value * times, form) for value in (min(found), max(found)))
    return f"{'-'.join(shown)} {unit}"
