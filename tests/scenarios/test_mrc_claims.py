"""Claims of MRC's papers: what of its runs is told, and when it agrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hpn.failover.analysis.denied import DeniedPath
from hpn.failover.analysis.edge import Edge, EdgeKind
from hpn.failover.analysis.job import Death, JobEdge, JobMetrics, MessageTimes, SpanResult
from hpn.failover.analysis.model import DrillMetrics
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.paper.claim import Claim, ClaimAnswer
from hpn.scenarios.paper.judging import judge
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.scenarios.paper.mrc_claims import (
    CLAIMS,
    FLAPS,
    PORT_DOWN,
    agg_lost,
    bypassed,
    flapping,
    port_lost,
    victim_unharmed,
)
from hpn.scenarios.paper.reproduce import drill_file
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric
from tests.scenarios.measured import FAILURE, MS, REPAIR, edge, metrics

BEFORE = 10.0
AGGS = ("agg-crash-srv6", "agg-dataplane-death-srv6")
DEATH = Death(1500 * MS, "a>b#0", 1400 * MS, None, 0)


def _run(
    paces: Sequence[float],
    edges: Sequence[Edge] = (),
    *,
    deaths: tuple[Death, ...] = (),
    denied: tuple[DeniedPath, ...] = (),
) -> DrillMetrics:
    """A job that had a pace of ``BEFORE`` before the first of its edges, and these after them."""
    times = MessageTimes(1, 1, 1.0, 1.0, 1.0)
    costs = tuple(JobEdge(BEFORE, pace, pace, 0.0, False, 0.0) for pace in paces)
    job = JobMetrics(4, 4, 0.5, (), 100.0, (), times, costs, 1, 0, deaths, 0, {}, wrong=0, open_ms=0.0, denied=denied)
    return replace(metrics(edges, ()), job=job)


def _found(runs: dict[str, DrillMetrics]) -> ClaimEvidence:
    return ClaimEvidence(runs, {}, {}, inventory(load_fabric("tiny")))


def _port_down(pace: float, deaths: tuple[Death, ...] = ()) -> Finding:
    return port_lost(_found({PORT_DOWN: _run((pace, BEFORE), (FAILURE, REPAIR), deaths=deaths)}))


@pytest.mark.parametrize(("pace", "agrees"), [(8.8, True), (8.75, True), (8.69, False), (5.0, False), (10.0, False)])
def test_a_port_of_eight_costs_an_eighth_and_not_nothing(pace: float, agrees: bool) -> None:
    found = _port_down(pace)
    assert found.agrees is agrees
    assert found.ours == f"{-(1 - pace / BEFORE):.1%} of the job's pace"


def test_a_job_that_dies_shows_none_of_it() -> None:
    dead = _run((8.8, BEFORE), (FAILURE, REPAIR), deaths=(DEATH,))
    runs = dict.fromkeys((PORT_DOWN, FLAPS, *AGGS), dead)
    found = [each(_found(runs)) for each in (port_lost, bypassed, flapping, agg_lost)]
    assert found == [Finding("the job dies", False)] * 4


@pytest.mark.parametrize(("took_ms", "agrees"), [(10, True), (19, True), (20, None), (134, False)])
def test_a_path_is_left_at_once_if_it_takes_fewer_round_trips_than_tens_of_microseconds_are(
    took_ms: int, agrees: bool | None
) -> None:
    sent_ns = FAILURE.inject_before_ns + MS
    other = DeniedPath("a", 0, REPAIR.inject_before_ns + MS, REPAIR.inject_before_ns + 900 * MS, MS)
    denied = (DeniedPath("a", 0, sent_ns, sent_ns + took_ms * MS, MS), other)
    found = bypassed(_found({PORT_DOWN: _run((8.8, BEFORE), (FAILURE, REPAIR), denied=denied)}))
    assert found.agrees is agrees
    assert found.ours.startswith(f"{took_ms}.0 round trips (")
    assert found.ours.endswith(", 1 paths")


FLAPPING = tuple(
    edge(kind, 1000 + 500 * at, 6000 if at == 3 else 1500 + 500 * at)
    for at, kind in enumerate((EdgeKind.FAILURE, EdgeKind.REPAIR) * 2)
)


@pytest.mark.parametrize(("down", "agrees"), [(5.0, True), (4.5, True), (2.0, False), (9.0, False)])
def test_the_mean_pace_while_links_flap_leaves_out_the_settled_end(down: float, agrees: bool) -> None:
    found = flapping(_found({FLAPS: _run((down, BEFORE, down, BEFORE), FLAPPING)}))
    assert found.agrees is agrees
    assert found.ours == f"{(down + BEFORE) / (2 * BEFORE) - 1:.0%} of the job's pace, and it lives"


@pytest.mark.parametrize(("paces", "agrees"), [((9.9, 9.6), True), ((9.9, 9.4), False), ((9.4, 9.9), False)])
def test_a_job_is_unaffected_if_neither_fault_costs_a_twentieth(paces: tuple[float, float], agrees: bool) -> None:
    runs = {name: _run((pace, BEFORE), (FAILURE, REPAIR)) for name, pace in zip(AGGS, paces, strict=True)}
    assert agg_lost(_found(runs)).agrees is agrees


@pytest.mark.parametrize(("ms", "agrees"), [(85.0, True), (172.0, False)])
def test_a_victim_is_unharmed_if_its_messages_take_as_long_as_alone(ms: float, agrees: bool) -> None:
    run = _run(())
    assert run.job is not None
    labels = {"2 to 0": 500.0, "5 to 1": ms}
    spans = tuple(
        SpanResult(label, "message", 10**6, 2, 9, each, each, each, 0, 0, 0) for label, each in labels.items()
    )
    found = victim_unharmed(_found({"incast-victim-multipath": replace(run, job=replace(run.job, spans=spans))}))
    assert found.agrees is agrees
    assert found.ours.endswith(f"of the victim's rate: {ms:.0f} ms, 81 ms alone")


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.counted], ids=lambda claim: claim.key)
def test_what_is_counted_holds_for_eight_planes_and_not_for_one(claim: Claim) -> None:
    row = judge(claim, {}, {}, 0)
    assert row.answer is ClaimAnswer.COUNTED
    assert {each.answer for each in row.without} == {ClaimAnswer.DIFFERS}


def test_counterfactuals_have_the_same_faults_in_the_same_network() -> None:
    for name in (PORT_DOWN, FLAPS):
        ours, theirs = (load_drill(drill_file(each)) for each in (name, f"{name}-rc"))
        assert ours.timeline == theirs.timeline
        without = {"srv6": None, "mtu": theirs.topology.mtu}  # the same path MTU is larger in a carrier
        assert ours.topology.model_copy(update=without) == theirs.topology
        assert ours.job is not None
        assert theirs.job is not None
        assert (ours.job.multipath is None, theirs.job.multipath is None) == (False, True)
