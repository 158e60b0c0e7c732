"""Claims of Meta's paper: what of its runs is told, and what each comparison changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.job import JobEdge, JobMetrics, MessageTimes, SpanResult
from hpn.failover.analysis.model import DrillMetrics
from hpn.scenarios.drill.job import JobSpec
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.paper.measures import ClaimEvidence
from hpn.scenarios.paper.meta_claims import pinned_and_cut, victim_spared
from hpn.scenarios.paper.reproduce import drill_file
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric
from tests.scenarios.measured import metrics


def _run(spans: tuple[SpanResult, ...] = (), edges: tuple[JobEdge, ...] = ()) -> DrillMetrics:
    times = MessageTimes(1, 1, 1.0, 1.0, 1.0)
    job = JobMetrics(4, 4, 1.0, (), 400.0, spans, times, edges, 1, 0, (), 0, {}, wrong=0, open_ms=0.0)
    return replace(metrics((), ()), job=job)


def _evidence(runs: dict[str, DrillMetrics]) -> ClaimEvidence:
    return ClaimEvidence(runs, {}, {}, inventory(load_fabric("tiny")))


def _message(label: str, ms: float) -> SpanResult:
    return SpanResult(label, "message", 10**6, 2, 9, ms, ms, ms, 0, 0, 0)


def _victim(ms: float) -> DrillMetrics:
    return _run((_message("2 to 0", 500.0), _message("5 to 1", ms)))


@pytest.mark.parametrize(("ms", "agrees"), [(160.0, True), (162.0, True), (165.0, False)])
def test_a_victim_is_spared_if_its_messages_take_no_longer_than_with_dcqcn(ms: float, agrees: bool) -> None:
    runs = {"incast-victim": _victim(ms), "incast-victim-simai-200g": _victim(161.0)}
    found = victim_spared(_evidence(runs))
    assert found.agrees is agrees
    assert found.ours == f"the victim's messages take {ms:.0f} ms, with DCQCN 161 ms"
    assert found.details == "those of the incast 500 ms, with DCQCN 500 ms"


@pytest.mark.parametrize(("after", "agrees"), [(1.0, True), (1.49, True), (1.5, False), (2.0, False)])
def test_pinned_flows_collide_if_more_than_the_share_of_the_uplink_is_lost(after: float, agrees: bool) -> None:
    edge = JobEdge(2.0, after, after, 0.0, False, 0.0)
    assert pinned_and_cut(_evidence({"job-pinned-link-down": _run(edges=(edge,))})).agrees is agrees


def _job(name: str) -> JobSpec:
    job = load_drill(drill_file(name)).job
    assert job is not None
    return job


def test_each_comparison_changes_what_it_is_about_and_nothing_else() -> None:
    one, many, same = (_job(f"job-qps-{name}") for name in ("one", "many", "same-port"))
    assert replace(one, queue_pairs=8) == many
    assert replace(same, source_ports="drawn") == many
    whole, half, ecmp, cut = (_job(f"job-pinned-{name}") for name in ("whole", "half", "half-ecmp", "link-down"))
    assert whole == cut
    assert replace(whole, segments=None, order="random") == half
    assert replace(half, queue_pairs=8, source_ports="drawn") == ecmp
