"""``link_imbalance`` takes the paths that an expectation is about: the healthy job's, or those after an edge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpn.failover.analysis.job import JobFacts, SpanFact
from hpn.failover.analysis.model import QUICK, EdgeKind
from hpn.failover.analysis.placement import Placement, TierSpread
from hpn.results.judge.verdict import Check
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.run.judgement import judge_measured
from hpn.scenarios.run.measurement import Facts, JobRecords, Measurement
from hpn.testbed.files.document import parse
from hpn.traffic.jobengine.records import MESSAGE, SPAN
from tests.failover.synthetic import MS, NO_PACKETS, S, edge, flow
from tests.results.sample import LOAD

DRILL = """
drill: cut
summary: one link is cut while a job runs
topology: tiny
job: {{collective: {{kind: all-reduce, size: 1 MB}}}}
timeline:
  faults: [{{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 2 s}}]
expect:
  - link_imbalance: {}
"""


def placement(when: str, edges: int, imbalance: float) -> Placement:
    tiers = [TierSpread(name, 4, 4, 1, "a link", ratio, 1.0, None) for name, ratio in (("a", 1.0), ("b", imbalance))]
    return Placement(when, edges, 0, (), tuple(tiers))


PLACEMENTS = (
    placement("start", 0, 9.0),
    placement("healthy", 0, 1.25),
    placement("cut failure", 1, 3.0),
    placement("cut repair", 2, 2.0),
)


def judged(limit: str, placements: tuple[Placement, ...] = PLACEMENTS) -> Check:
    """Of a job that was looked at then."""
    job = JobFacts({0: (SpanFact("iteration", "iteration", 0, 0),)}, 1, MS, 1, 0, {}, placements=placements)
    spans = np.zeros(1, SPAN)
    spans["begin_ns"], spans["end_ns"] = S, 2 * S
    expectations = drill_from(parse(DRILL.format(limit), "d.yaml"), Path()).expectations
    edges = (edge(4 * S, 6 * S), replace(edge(6 * S, 9 * S), kind=EdgeKind.REPAIR))
    facts = Facts(expectations, QUICK, (flow(0),), edges, S, 3 * S, 9 * S, LOAD, 0, (), job=job)
    records = JobRecords(spans, np.zeros(0, MESSAGE))
    _, verdict = judge_measured(Measurement(facts, (), *NO_PACKETS, None, records))
    (found,) = verdict.checks
    return found


@pytest.mark.parametrize(
    ("limit", "figure"),
    [
        ("{at_most: 5}", 1.25),
        ("{at_most: 5, edge: failure}", 3.0),
        ("{at_most: 5, edge: repair}", 2.0),
    ],
)
def test_the_worst_tier_of_the_moments_asked_for(limit: str, figure: float) -> None:
    assert judged(limit).measured == figure


def test_where_nobody_looked_nothing_is_said() -> None:
    found = judged("{at_most: 5, edge: failure}", PLACEMENTS[:2])
    assert found.measured is None
    assert "nobody looked" in found.evidence
