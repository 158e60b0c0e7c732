"""What a run counts of buffers, and what can be expected of it: PFC, headroom, drops, trimming, the watchdog."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.buffers import ClassUse
from hpn.results.judge.verdict import Check, Outcome
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.expect import buffers
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.metric import QUEUES_ONLY, Metric
from hpn.scenarios.expect.verdict import judge_expectation
from hpn.scenarios.run.port_buffers import class_use
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.files.document import parse
from hpn.testbed.kernel.rtnetlink.mmu import ClassCounters
from tests.results import sample
from tests.scenarios.measured import metrics

MS = 10**6
SWITCH = "{preset: tiny, switch: {buffer: 2 MB}}"
DRILL = """
drill: lossless
summary: who stops whom
topology: {}
timeline: {{healthy: 2 s}}
expect:
  - {}
"""
FABRIC = load_fabric("tiny")
TOR = next(node for node in FABRIC.nodes if node.is_switch)
LINK = FABRIC.links_of(TOR.name)[0]
IDLE = ClassCounters(*[0] * 24)


def _drill(expectation: str, topology: str = SWITCH) -> Drill:
    return drill_from(parse(DRILL.format(topology, expectation), "d.yaml"), Path())


def _judged(expectation: str, found: tuple[ClassUse, ...] | None) -> Check:
    (asked,) = _drill(expectation).expectations
    return judge_expectation(asked, Evidence(replace(metrics((), ()), buffers=found), RunFacts()))


@pytest.mark.parametrize(
    ("expectation", "measured", "evidence"),
    [
        ("pause_time: {below: 5 s}", 4400.0, "p0.s0.h1:r0.0 priority 3, by 321 XOFF, and still is"),
        ("pfc_frames: {at_most: 400}", 333, "p0.s0.t0.0:h1r0 priority 3: 321"),
        ("headroom_drops: {at_most: 10}", 7, "p0.s0.t0.0:up0 priority 3: 7"),
        ("buffer_drops: {at_most: 10}", 5, "p0.s0.t0.0:h1r0 priority 1: 5"),
        ("packets_trimmed: {at_most: 10}", 3, "p0.s0.t0.0:h1r0 priority 1: 3"),
        ("pfc_storms: {at_most: 0}", 0, "at no port"),
    ],
)
def test_figures_are_of_the_whole_run_and_name_the_port(expectation: str, measured: float, evidence: str) -> None:
    check = _judged(expectation, sample.buffers())
    assert (check.outcome, check.measured, check.evidence) == (Outcome.PASS, measured, evidence)


def test_drops_of_hosts_are_no_drops_of_switches() -> None:
    host = sample.class_use("p0.s0.h0:r0.0", drops=9)
    assert not host.is_switch
    assert _judged("buffer_drops: {at_most: 0}", (host,)).outcome is Outcome.PASS
    assert _judged("buffer_drops: {at_most: 0}", (replace(host, is_switch=True),)).outcome is Outcome.FAIL


def test_a_run_in_which_no_port_was_stopped_has_a_pause_of_zero() -> None:
    check = _judged("pause_time: {at_most: 0 ms}", (sample.class_use("p0.s0.t0.0:up0"),))
    assert (check.outcome, check.measured, check.evidence) == (Outcome.PASS, 0.0, "no port was stopped")


def test_what_was_not_counted_is_not_judged() -> None:
    for found in (None, (), (sample.class_use("p0.s0.t0.0:up0", 7),), (sample.class_use("p0.s0.t0.0:up0", 6),)):
        assert _judged("headroom_drops: {at_most: 0}", found).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("metric", buffers.METRICS, ids=lambda metric: metric.key)
def test_an_expectation_of_buffers_asks_for_a_switch_in_the_topology(metric: Metric) -> None:
    limit = f"{metric.key}: {{at_most: {'1 s' if metric.unit else '0'}}}"
    assert _drill(limit).expectations[0].metric is metric
    assert metric.unmodelled == QUEUES_ONLY
    with pytest.raises(InputError) as caught:
        _drill(limit, "tiny")
    (problem,) = caught.value.problems
    assert problem.startswith("d.yaml:7:")
    assert "can never be judged: the topology has no switch:; write topology: {preset: NAME, switch:" in problem


def test_counters_of_a_class_are_those_since_the_start_and_watermarks_as_they_are() -> None:
    was = replace(IDLE, sent_packets=10, tx_xoff=3, pausing_ns=5, queue_max=70, drops=1, restored=1)
    now = replace(was, sent_packets=15, tx_xoff=4, pausing_ns=9, queue=7, drops=1, restored=2, pausing=1)
    found = class_use(TOR, LINK.end_at(TOR.name), LINK.name, 3, was, now)
    assert (found.port, found.link, found.priority) == (LINK.end_at(TOR.name).label, LINK.name, 3)
    assert (found.sent_packets, found.xoff_sent, found.pausing_ns, found.drops, found.storms_ended) == (5, 1, 4, 0, 1)
    assert (found.queue_bytes, found.queue_max_bytes, found.pausing, found.paused) == (7, 70, True, False)


def test_a_port_that_was_made_anew_has_counted_since_then() -> None:
    was, now = replace(IDLE, sent_packets=10, drops=4), replace(IDLE, sent_packets=2, drops=1)
    found = class_use(TOR, LINK.end_at(TOR.name), LINK.name, 3, was, now)
    assert (found.sent_packets, found.drops) == (2, 1)


def test_a_control_that_waits_for_marks_needs_a_class_of_rdma_that_marks() -> None:
    ecn = "classes: [{priority: 3, dscp: [3], lossless: yes, weight: 50%s}]"
    job = "timeline: {healthy: 2 s}\njob: {messages: {pattern: incast, size: 1 MB}, congestion: dcqcn, rehash: {}}"
    text = DRILL.replace("timeline: {{healthy: 2 s}}", job.replace("{", "{{").replace("}", "}}"))
    topology = "{preset: tiny, switch: {buffer: 2 MB, %s}}"

    def drill(classes: str) -> Drill:
        return drill_from(parse(text.format(topology % classes, "job_survives: yes"), "d.yaml"), Path())

    assert drill(ecn % ", ecn: {kmin: 60 KB, kmax: 240 KB, pmax: 0.8}").job is not None
    for classes in (ecn % "", (ecn % ", ecn: {kmin: 60 KB, kmax: 240 KB, pmax: 0.8}") + ", rdma_dscp: 4"):
        with pytest.raises(InputError) as caught:
            drill(classes)
        assert any("simai-200g waits for marks and no switch marks" in each for each in caught.value.problems)
        assert any("job.rehash: no switch marks packets" in each for each in caught.value.problems)
