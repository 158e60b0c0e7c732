"""``bypass`` takes the path that lost for the most round trips, of those denied after the edges it is about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpn.failover.analysis.denied import DeniedPath
from hpn.failover.analysis.job import JobFacts, SpanFact
from hpn.failover.analysis.model import QUICK, EdgeKind
from hpn.results.judge.verdict import Check, Outcome
from hpn.results.run.metrics import metrics_from_dict, metrics_to_dict
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
job: {{collective: {{kind: all-reduce, size: 1 MB}}, transport: multipath}}
timeline:
  faults: [{{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 2 s}}]
expect:
  - bypass: {}
"""
CUT_NS, REPAIR_NS = 4 * S, 6 * S
MANY = {"p0.s0.h0.r0": {"path_packets_good": 9}}


def denied(sent_ns: int, took_ms: int, rtt_ms: int = 10, port: int = 0) -> DeniedPath:
    return DeniedPath("p0.s0.h0.r0", port, sent_ns, sent_ns + took_ms * MS, rtt_ms * MS)


DENIED = (
    denied(CUT_NS - MS, 90),  # before any edge
    denied(CUT_NS + MS, 20),
    denied(CUT_NS + 2 * MS, 40, rtt_ms=40),  # longer, and fewer round trips
    denied(CUT_NS + 3 * MS, 100, rtt_ms=0),  # no round trip was known
    denied(REPAIR_NS + MS, 30, port=1),
)


def measured(limit: str, paths: tuple[DeniedPath, ...], counters: dict[str, dict[str, int]]) -> Measurement:
    job = JobFacts({0: (SpanFact("iteration", "iteration", 0, 0),)}, 1, MS, 1, 0, counters, denied=paths)
    spans = np.zeros(1, SPAN)
    spans["begin_ns"], spans["end_ns"] = S, 2 * S
    expectations = drill_from(parse(DRILL.format(limit), "d.yaml"), Path()).expectations
    edges = (edge(CUT_NS, REPAIR_NS), replace(edge(REPAIR_NS, 9 * S), kind=EdgeKind.REPAIR))
    facts = Facts(expectations, QUICK, (flow(0),), edges, S, 3 * S, 9 * S, LOAD, 0, (), job=job)
    return Measurement(facts, (), *NO_PACKETS, None, JobRecords(spans, np.zeros(0, MESSAGE)))


def judged(
    limit: str, paths: tuple[DeniedPath, ...] = DENIED, counters: dict[str, dict[str, int]] | None = None
) -> Check:
    _, verdict = judge_measured(measured(limit, paths, MANY if counters is None else counters))
    (found,) = verdict.checks
    return found


@pytest.mark.parametrize(
    ("limit", "measured_x"), [("{below: 9, edge: failure}", 2.0), ("{below: 9, edge: repair}", 3.0)]
)
def test_the_first_loss_decides_which_edge_a_denial_belongs_to(limit: str, measured_x: float) -> None:
    assert judged(limit).measured == measured_x


def test_its_evidence_names_the_port_and_both_times() -> None:
    said = judged("{below: 9, edge: failure}").evidence
    assert said.endswith("longest of 2 denied paths, by port 0 of p0.s0.h0.r0: 20 ms, round trip 10 ms")


def test_a_limit_within_a_tick_of_both_ends_is_inconclusive() -> None:
    outcomes = [judged(f"{{below: {limit}, edge: failure}}").outcome for limit in (1.8, 2.05, 2.2)]
    assert outcomes == [Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS]


@pytest.mark.parametrize(
    ("paths", "counters", "why"),
    [
        ((), MANY, "no path was denied"),
        (DENIED[3:4], MANY, "and the round trip known"),
        ((), {}, "transport is not multipath"),
    ],
)
def test_without_a_denial_that_can_be_told_it_is_inconclusive(
    paths: tuple[DeniedPath, ...], counters: dict[str, dict[str, int]], why: str
) -> None:
    found = judged("{below: 9, edge: failure}", paths, counters)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert why in found.evidence


def test_metrics_keep_denied_paths_and_omit_the_field_without_any() -> None:
    for paths in (DENIED, ()):
        metrics, _ = judge_measured(measured("{below: 9}", paths, MANY))
        document = metrics_to_dict(metrics)
        assert isinstance(document["job"], dict)
        assert ("denied" in document["job"]) == bool(paths)
        assert metrics_from_dict(document) == metrics
