"""What is expected of a part of the fabric, and of the lab as a whole: scopes, untouched, converged, order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hpn.failover.analysis.hostload import HostLoad
from hpn.failover.analysis.model import DrillMetrics, FlowEdgeResult, FlowResult, Goodput, Relation
from hpn.failover.analysis.protocol_events import EventSpan, ProtocolEvent
from hpn.results.judge.verdict import Check, Outcome
from hpn.scenarios.expect.evidence import RunFacts
from hpn.scenarios.expect.scope import EVERYWHERE, Scope, place_of
from hpn.scenarios.expect.verdict import judge

from .measured import CALM, FAILURE, MS, REPAIR, at_edge, drill, flow, metrics

PASS, FAIL, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE

HALF = Goodput(100.0, 50.0, 50.0)


def check(expectation: str, measured: DrillMetrics) -> Check:
    return judge(drill(expectation), measured, RunFacts(state_differences=())).checks[0]


def between(src: str, dst: str, *edges: FlowEdgeResult) -> FlowResult:
    return flow(edges[0].name, *edges, src=src, dst=dst)


def in_plane(plane: int, result: FlowEdgeResult) -> FlowEdgeResult:
    return replace(result, plane=plane)


def failure(name: str, relation: Relation, lost: int, plane: int, goodput: Goodput = CALM) -> FlowEdgeResult:
    return in_plane(plane, at_edge(name, relation, lost, goodput=goodput))


def cut(*, other_lost: int = 0) -> DrillMetrics:
    """NIC h0.r0 loses its port of plane 0: 'up' lost 20 packets in plane 0, 'up1' none in plane 1; 'far' is on rail 1.

    Each flow runs in plane 1 when the repair comes.
    """
    hit, far = "p0.s0.h0.r0", "p0.s0.h0.r1"
    calm = [in_plane(1, at_edge(name, Relation.SENDER)) for name in ("up", "up1")]
    back = in_plane(1, at_edge("down", Relation.RECEIVER, 3, at_ms=3000))
    other = in_plane(1, at_edge("far", Relation.NONE))
    flows = (
        between(hit, "p0.s1.h0.r0", failure("up", Relation.SENDER, 20, 0, HALF), calm[0]),
        between(hit, "p0.s1.h0.r0", failure("up1", Relation.SENDER, 0, 1), calm[1]),
        between("p0.s1.h0.r0", hit, failure("down", Relation.RECEIVER, 40, 0, HALF), back),
        between(far, "p0.s1.h0.r1", failure("far", Relation.NONE, other_lost, 1), other),
    )
    return metrics((FAILURE, REPAIR), flows)


def test_a_nic_s_name_says_host_and_rail() -> None:
    assert place_of("p0.s1.h3.r12") == ("p0.s1.h3", 12)
    assert place_of("odd") == ("", None)
    assert place_of("p0.s1.h3.rx") == ("p0.s1.h3", None)


def test_a_scope_takes_flows_in_all_of_its_fields_and_is_touched_through_any() -> None:
    ends = ("p0.s0.h0.r0", "p0.s1.h0.r0")
    scope = Scope(planes=(0,), rails=(0,), hosts=("p0.s1.h0",))
    assert scope.has_flow(*ends, 0)
    assert not scope.has_flow(*ends, 1)
    assert not scope.has_flow("p0.s0.h0.r0", "p0.s1.h1.r0", 0)
    assert scope.touches("p0.s1.h0.r5", "p0.s0.h0.r5", 1)
    assert not scope.touches("p0.s0.h0.r5", "p0.s0.h1.r5", None)
    assert EVERYWHERE.has_flow("a", "b", None)
    assert not EVERYWHERE


@pytest.mark.parametrize(
    ("expectation", "outcome", "measured", "evidence"),
    [
        ("worst_outage: {below: 50 ms, plane: 0, edge: failure}", PASS, 40, "down at cut failure 0"),
        ("worst_outage: {below: 50 ms, plane: 1, edge: failure}", PASS, 0, "no flow lost anything at cut failure 0"),
        ("worst_outage: {below: 50 ms, plane: 0, edge: repair}", OPEN, None, "the run has no flow in plane 0 at"),
        ("packets_lost: {at_most: 60, plane: 0}", PASS, 60, "down and 1 more"),
        ("packets_lost: {at_most: 2, plane: 1}", FAIL, 3, "down"),
        ("packets_lost: {at_most: 0, rail: 1}", PASS, 0, "none of 1 flows"),
        ("packets_lost: {at_most: 9, rail: 0}", FAIL, 63, "down and 1 more"),
        ("packets_lost: {at_most: 0, nic: p0.s0.h0.r1, edge: failure}", PASS, 0, "none of 1 flows"),
        ("flows_with_loss: {at_most: 1, flows: sender, nic: p0.s1.h0.r0}", PASS, 1, "up"),
        (
            "goodput_after: {at_least: 70 %, edge: failure, nic: p0.s0.h0.r0}",
            FAIL,
            50,
            "received by p0.s0.h0.r0 at cut",
        ),
        ("goodput_after: {at_most: 80 %, edge: failure, nic: p0.s0.h0.r0}", PASS, 75, "sent by p0.s0.h0.r0 at cut"),
        ("goodput_after: {at_most: 60 %, edge: failure, nic: p0.s0.h0.r0}", FAIL, 75, "sent by p0.s0.h0.r0 at cut"),
        ("goodput_after: {at_least: 97 %, edge: failure, rail: 1}", PASS, 100, "sent by p0.s0.h0.r1 at cut"),
        ("outage_p95: {below: 50 ms, edge: failure}", PASS, 40, "4 flows at cut failure 0"),
        ("outage_p95: {below: 30 ms, edge: failure, flows: sender}", PASS, 20, "2 flows at cut failure 0"),
        ("outage_p95: {below: 50 ms, rail: 1}", PASS, 0, "1 flows at cut failure 0"),
    ],
)
def test_an_expectation_is_about_the_part_it_names(
    expectation: str, outcome: Outcome, measured: float | None, evidence: str
) -> None:
    found = check(expectation, cut())
    assert (found.outcome, found.measured) == (outcome, measured)
    assert found.evidence.startswith(evidence)


def test_p95_is_the_nineteenth_of_twenty_flows_and_open_when_that_one_never_came_back() -> None:
    def run(*, recovered: bool) -> DrillMetrics:
        lost = [at_edge(f"f{n}", Relation.SENDER, n) for n in range(1, 19)]
        lost += [at_edge(f"f{n}", Relation.SENDER, n, recovered=recovered) for n in (19, 20)]
        return metrics((FAILURE,), [between("p0.s0.h0.r0", "p0.s1.h0.r0", result) for result in lost])

    assert check("outage_p95: {below: 50 ms, edge: failure}", run(recovered=True)).measured == 19
    for limit, outcome in (("5 s", OPEN), ("500 ms", FAIL)):
        stuck = check(f"outage_p95: {{below: {limit}, edge: failure}}", run(recovered=False))
        assert (stuck.outcome, stuck.measured, stuck.open_ended) == (outcome, 2000, True)


@pytest.mark.parametrize(
    ("expectation", "lost", "outcome", "evidence"),
    [
        ("untouched: {rails: [1]}", 0, PASS, "none of 1 flows"),
        ("untouched: {rails: [1]}", 2, FAIL, "far at cut failure 0: 2 packets lost"),
        ("untouched: {rails: [1], edge: repair}", 2, PASS, "none of 1 flows"),
        (
            "untouched: {hosts: [p0.s1.h0], edge: failure}",
            0,
            FAIL,
            "up at cut failure 0: 20 packets lost; 1 more flows",
        ),
        ("untouched: {planes: [1], edge: failure}", 0, PASS, "none of 2 flows"),
        ("untouched: {planes: [1], rails: [1], edge: repair}", 0, FAIL, "down at cut repair 0: 3 packets lost"),
        ("untouched: {hosts: [p0.s0.h1]}", 0, OPEN, "no flow that sends has to do with host p0.s0.h1"),
        ("untouched: {rails: [1], hosts: [p0.s0.h1]}", 0, OPEN, "no flow that sends has to do with host p0.s0.h1"),
        ("untouched: {rails: [1], hosts: [p0.s0.h1]}", 2, FAIL, "far at cut failure 0: 2 packets lost"),
    ],
)
def test_what_must_feel_nothing_feels_nothing(expectation: str, lost: int, outcome: Outcome, evidence: str) -> None:
    found = check(expectation, cut(other_lost=lost))
    assert (found.outcome, found.evidence) == (outcome, evidence)


@pytest.mark.parametrize(
    ("late", "gap_ms", "outcome"), [(0, 1.0, PASS), (4, 1.0, FAIL), (4, 90.0, OPEN), (0, 90.0, OPEN)]
)
def test_a_stall_is_felt_but_not_when_the_sender_itself_paused(late: int, gap_ms: float, outcome: Outcome) -> None:
    stalled = replace(at_edge("far", Relation.NONE), late=late, send_gap_ms=gap_ms)
    run = metrics((FAILURE,), [between("p0.s0.h0.r1", "p0.s1.h0.r1", stalled)])
    assert check("untouched: {rails: [1]}", run).outcome is outcome


def marked(*first_last: tuple[ProtocolEvent, float, float]) -> DrillMetrics:
    """The failure at 1,000 ms, whose window ends at 3,000 ms, with these marks in ms since the injection."""
    marks = tuple(
        EventSpan(mark, 2, int((1000 + first) * MS), f"first {mark}", int((1000 + last) * MS), f"last {mark}")
        for mark, first, last in first_last
    )
    run = metrics((FAILURE,), [between("p0.s0.h0.r0", "p0.s1.h0.r0", at_edge("up", Relation.SENDER, 5))])
    return replace(run, edges=tuple(replace(edge, marks=marks) for edge in run.edges))


SEQUENCE = (
    (ProtocolEvent.CARRIER, 1, 2),
    (ProtocolEvent.LAG, 3, 3),
    (ProtocolEvent.ROUTE_WITHDRAWN, 5, 9),
    (ProtocolEvent.MOVED, 8, 40),
)


@pytest.mark.parametrize(
    ("marks", "outcome", "measured", "evidence"),
    [
        (SEQUENCE, PASS, 40, "cut failure 0: last moved"),
        ((*SEQUENCE, (ProtocolEvent.DIED, 540, 540)), PASS, 40, "cut failure 0: last moved"),
        (((ProtocolEvent.BGP_DOWN, 700, 700),), FAIL, 700, "cut failure 0: last bgp-down"),
        (
            ((ProtocolEvent.LACP, 5, 1500),),
            FAIL,
            1500,
            "cut failure 0: last lacp, no 1 s of quiet after the last change",
        ),
        ((), OPEN, None, "no protocol changed its state at cut failure 0"),
    ],
)
def test_the_lab_has_converged_when_the_last_protocol_is_quiet(
    marks: Sequence[tuple[ProtocolEvent, float, float]], outcome: Outcome, measured: float | None, evidence: str
) -> None:
    found = check("converged: {below: 500 ms, edge: failure}", marked(*marks))
    assert (found.outcome, found.evidence) == (outcome, evidence)
    assert found.measured == (None if measured is None else pytest.approx(measured, abs=0.01))


def test_a_lab_that_was_not_quiet_yet_keeps_no_upper_limit() -> None:
    found = check("converged: {below: 2 s}", marked((ProtocolEvent.LACP, 5, 1500)))
    assert (found.outcome, found.open_ended) == (OPEN, True)


@pytest.mark.parametrize(
    ("events", "outcome", "measured", "evidence"),
    [
        ("carrier, lag, route-withdrawn, moved", PASS, 2, "cut failure 0: carrier 1.00 ms, lag 3.00 ms"),
        ("lag, carrier", FAIL, -2, "cut failure 0: lag 3.00 ms, carrier 1.00 ms"),
        ("carrier, moved, route-withdrawn", FAIL, -3, "cut failure 0: moved 8.00 ms, route-withdrawn 5.00 ms"),
        ("carrier, bgp-down", FAIL, None, "no bgp-down event at cut failure 0"),
    ],
)
def test_events_follow_each_other_as_written(
    events: str, outcome: Outcome, measured: float | None, evidence: str
) -> None:
    found = check(f"order: {{fault: cut, events: [{events}]}}", marked(*SEQUENCE))
    assert (found.outcome, found.measured, found.evidence) == (outcome, measured, evidence)
    assert found.text == f"order {events} of cut at failure"


def test_an_inversion_within_the_loop_s_lag_proves_nothing() -> None:
    host = HostLoad(120, 12, 2, 48, 40, 0, 0, 2, 8, 1.5, 15, 3, 5, loop_lag_max_ms=6, loop_lag_p99_ms=1)
    run = replace(marked(*SEQUENCE), host=host)
    assert check("order: {events: [lag, carrier]}", run).outcome is OPEN
    assert check("order: {events: [carrier, lag]}", run).outcome is PASS


@pytest.mark.parametrize(
    ("expectation", "text"),
    [
        ("worst_outage: {below: 1 s, plane: 0, rail: 1}", "worst outage in plane 0, rail 1 below 1 s"),
        (
            "goodput_after: {at_least: 45 %, flows: hit, nic: p0.s0.h0.r0, edge: failure}",
            "goodput after of hit flows in NIC p0.s0.h0.r0 at failure at least 45 % of before",
        ),
        ("untouched: {rails: [1], hosts: [p0.s0.h1], fault: cut}", "rail 1, host p0.s0.h1 untouched of cut"),
        ("converged: {below: 5 s, edge: repair}", "converged at repair below 5 s"),
    ],
)
def test_an_expectation_says_where_it_looks(expectation: str, text: str) -> None:
    assert drill(expectation).expectations[0].text == text


def test_what_one_edge_surely_broke_is_not_made_doubtful_by_a_longer_figure_of_another() -> None:
    """The repair took 1,000 ms or as little as 300, as its call took long; the failure surely took 900 ms."""
    slow = replace(REPAIR, inject_after_ns=REPAIR.inject_before_ns + 700 * MS)
    flows = [between("p0.s0.h0.r0", "p0.s1.h0.r0", *(at_edge("up", Relation.SENDER) for _ in range(2)))]
    run = metrics((FAILURE, slow), flows)
    marks = [
        (EventSpan(ProtocolEvent.LAG, 1, at, "x", at, "x"),)
        for at in (FAILURE.inject_before_ns + 900 * MS, slow.inject_before_ns + 1000 * MS)
    ]
    found = replace(run, edges=tuple(replace(e, marks=m) for e, m in zip(run.edges, marks, strict=True)))
    assert check("converged: {below: 800 ms}", found).outcome is FAIL
    assert check("converged: {below: 950 ms}", found).outcome is OPEN
    assert check("converged: {below: 1100 ms}", found).outcome is PASS
