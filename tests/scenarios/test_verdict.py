"""Verdicts: each expectation passes, fails or stays open with its margin, and what makes a run say nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.cpu_waits import Waits
from hpn.failover.analysis.hostload import HostLoad
from hpn.failover.analysis.location import LocatedFault, Location
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.metrics.doubts import unexplained_losses
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, Phase, Phases, Relation
from hpn.failover.analysis.settings import QUICK
from hpn.results.judge.verdict import Check, Outcome, Verdict
from hpn.scenarios.drill.catalogue import load
from hpn.scenarios.expect.evidence import RunFacts
from hpn.scenarios.expect.metric import Larger, Metric, Shape
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.verdict import judge
from tests.failover import synthetic

from .measured import FAILURE, NO_PHASE, REPAIR, at_edge, drill, edge, flow, link_down, metrics, stalled

PASS, FAIL, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
CLEAN = RunFacts(state_differences=())


def verdict(expectation: str, measured: DrillMetrics, facts: RunFacts = CLEAN) -> Verdict:
    return judge(drill(expectation), measured, facts)


def check(expectation: str, measured: DrillMetrics, facts: RunFacts = CLEAN) -> Check:
    return verdict(expectation, measured, facts).checks[0]


@pytest.mark.parametrize(
    ("expectation", "outcome", "measured", "margin", "evidence"),
    [
        ("worst_outage: {below: 50 ms}", PASS, 40, 10, "rx at cut failure 0: 40 packets, by timestamps 40.8 ms"),
        ("worst_outage: {below: 40 ms}", OPEN, 40, 0, "rx at cut failure 0"),
        ("worst_outage: {below: 30 ms}", FAIL, 40, -10, "rx at cut failure 0"),
        ("worst_outage: {below: 30 ms, flows: sender}", PASS, 5, 25, "tx at cut failure 0"),
        (
            "worst_outage: {below: 30 ms, edge: repair, flows: hit}",
            PASS,
            0,
            30,
            "no flow lost anything at cut repair 0",
        ),
        ("worst_outage: {above: 30 ms, edge: failure}", PASS, 40, 10, "rx at cut failure 0"),
        ("median_outage: {below: 50 ms, edge: failure, flows: hit}", PASS, 22.5, 27.5, "2 flows at cut failure 0"),
        ("packets_lost: {at_most: 45}", PASS, 45, 0, "rx and 1 more"),
        ("packets_lost: {at_most: 44}", FAIL, 45, -1, "rx and 1 more"),
        ("packets_lost: {at_most: 0, flows: others}", PASS, 0, 0, "none of 1 flows"),
        ("packets_lost: {at_most: 4, edge: failure, flows: sender}", FAIL, 5, -1, "tx"),
        ("packets_lost: {below: 45}", FAIL, 45, 0, "rx and 1 more"),
        ("flows_with_loss: {at_least: 2}", PASS, 2, 0, "tx and 1 more"),
        ("flows_unrecovered: {at_most: 0}", PASS, 0, 0, "none of 3 flows"),
        ("queue_pair_deaths: {at_most: 0}", PASS, 0, 0, "none of 3 flows"),
        ("goodput_during: {at_least: 95 %, edge: failure, flows: hit}", PASS, 96, 1, "received by n at cut failure 0"),
        ("goodput_during: {at_least: 97 %, edge: failure, flows: hit}", FAIL, 96, -1, "received by n at cut failure 0"),
        ("goodput_during: {at_least: 97 %, flows: others}", PASS, 100, 3, "sent by a at cut failure 0"),
        ("noise_floor: {below: 50 ms}", PASS, 12, 38, "1.5 s of traffic, sender gaps up to 5 ms"),
        ("noise_floor: {below: 10 ms}", FAIL, 12, -2, "1.5 s of traffic"),
        ("detect: {below: 10 ms}", OPEN, None, None, "did not happen"),
    ],
)
def test_an_expectation_is_judged_with_margin_and_evidence(
    expectation: str, outcome: Outcome, measured: float | None, margin: float | None, evidence: str
) -> None:
    found = check(expectation, link_down())
    assert (found.outcome, found.measured) == (outcome, measured)
    assert found.margin == pytest.approx(margin)
    assert found.evidence.startswith(evidence)


@pytest.mark.parametrize(
    ("expectation", "died", "outcome", "evidence"),
    [
        ("worst_outage: {above: 1900 ms, edge: failure}", False, PASS, "rx at cut failure 0: 2,000 packets"),
        ("flows_unrecovered: {at_least: 1, edge: failure}", False, PASS, "rx"),
        ("flows_unrecovered: {at_most: 0, edge: repair}", False, PASS, "none of 1 flows"),
        ("queue_pair_deaths: {at_most: 0}", False, PASS, "none of 1 flows"),
        ("goodput_after: {at_least: 97 %, edge: repair}", False, PASS, "received by n at cut repair 0"),
        ("worst_outage: {above: 500 ms, edge: failure}", True, PASS, "rx at cut failure 0: its queue pair died"),
        ("worst_outage: {below: 5 s, edge: failure}", True, FAIL, "rx at cut failure 0: its queue pair died"),
        ("worst_outage: {above: 5 s, edge: failure}", True, OPEN, "rx at cut failure 0: its queue pair died"),
        ("flows_unrecovered: {at_least: 1, edge: repair}", True, PASS, "rx"),
        ("queue_pair_deaths: {at_least: 1, flows: receiver}", True, PASS, "rx"),
        ("queue_pair_deaths: {at_most: 0}", True, FAIL, "rx"),
        ("goodput_during: {at_most: 5 %}", True, PASS, "received by n at cut failure 0"),
        ("recover: {below: 5 s, edge: failure}", True, FAIL, "1 flows did not recover after cut failure 0"),
    ],
)
def test_what_never_came_back_is_no_short_outage(expectation: str, died: bool, outcome: Outcome, evidence: str) -> None:
    found = check(expectation, stalled(died=died))
    assert found.outcome is outcome
    assert found.evidence.startswith(evidence)


@pytest.mark.parametrize(
    ("lost", "died", "outcome"),
    [
        ((10, 20, 30, 0, 0), 2, FAIL),  # 30 ms: what never came back is longer than all others
        ((10, 20, 30, 0), 1, FAIL),  # 25 ms
        ((10, 0), 1, FAIL),  # of a number and a flow that never came back
        ((10, 10, 30, 0, 0), 1, PASS),  # 10 ms
    ],
)
def test_a_queue_pair_that_died_without_losing_anything_shortens_no_median(
    lost: tuple[int, ...], died: int, outcome: Outcome
) -> None:
    flows = [
        flow(str(at), at_edge(str(at), Relation.SENDER, n, died=at >= len(lost) - died)) for at, n in enumerate(lost)
    ]
    assert check("median_outage: {below: 21 ms}", metrics((FAILURE,), flows)).outcome is outcome


def test_a_phase_is_judged_by_its_slowest_edge_and_names_the_event() -> None:
    detect = Phase(3.5, 0, "p0.s0.h0 bond0 carrier-down")
    phases = Phases(detect, NO_PHASE, NO_PHASE, NO_PHASE, NO_PHASE, NO_PHASE)
    found = check(
        "detect: {below: 5 ms}", metrics((FAILURE,), [replace(f, edges=f.edges[:1]) for f in link_down().flows], phases)
    )
    assert (found.outcome, found.measured) == (PASS, 3.5)
    assert found.evidence == "cut failure 0: p0.s0.h0 bond0 carrier-down"


@pytest.mark.parametrize(
    ("limit", "outcome", "evidence"),
    [
        ("below: 5 ms", OPEN, "cut failure 1: did not happen"),
        ("below: 3 ms", FAIL, "cut failure 0: p0.s0.h0 bond0 carrier-down"),
        ("at_least: 1 ms", OPEN, "cut failure 1: did not happen"),
    ],
)
def test_a_fault_that_nobody_noticed_is_not_hidden_by_one_that_was(limit: str, outcome: Outcome, evidence: str) -> None:
    detect = Phases(Phase(3.5, 0, "p0.s0.h0 bond0 carrier-down"), *(NO_PHASE for _ in range(5)))
    second = replace(edge(EdgeKind.FAILURE, 3000, 6000), index=1)
    flows = [flow("tx", at_edge("tx", Relation.SENDER, 5), at_edge("tx", Relation.SENDER, 500), src="n")]
    measured = metrics((FAILURE, second), flows)
    seen = replace(measured, edges=(replace(measured.edges[0], phases=detect), measured.edges[1]))
    found = check(f"detect: {{{limit}, edge: failure}}", seen)
    assert (found.outcome, found.evidence) == (outcome, evidence)


def test_a_queue_pair_that_died_without_losing_anything_did_not_recover() -> None:
    died = metrics((FAILURE,), [flow("rx", at_edge("rx", Relation.RECEIVER, 0, died=True), dst="n")])
    found = check("recover: {below: 1 s}", died)
    assert (found.outcome, found.evidence) == (FAIL, "1 flows did not recover after cut failure 0")


@pytest.mark.parametrize(
    ("expectation", "outcome"),
    [
        ("detect: {at_most: 20 ms}", OPEN),  # the clock is read to 5 us
        ("detect: {at_most: 21 ms}", PASS),  # told too long, never too short
        ("detect: {below: 19 ms}", OPEN),
        ("detect: {below: 15 ms}", FAIL),
        ("detect: {at_least: 17 ms}", OPEN),
        ("detect: {at_least: 15 ms}", PASS),
        ("switch: {at_most: 21 ms}", OPEN),  # both its events are stamped late
        ("switch: {at_most: 25 ms}", PASS),
    ],
)
def test_a_phase_is_told_no_better_than_the_event_loop_stamped_it(expectation: str, outcome: Outcome) -> None:
    twenty = Phase(20.0, 0, "x")
    phases = Phases(twenty, twenty, *(NO_PHASE for _ in range(4)))
    measured = metrics((FAILURE,), [replace(f, edges=f.edges[:1]) for f in link_down().flows], phases)
    late = HostLoad(120, 12, 2, 48, 40, 0, 0, 2, 8, 1.5, 15, 3, 5, loop_lag_max_ms=4.0, loop_lag_p99_ms=1)
    assert check(expectation, replace(measured, host=late)).outcome is outcome


@pytest.mark.parametrize(
    ("expectation", "outcome"),
    [
        ("switch: {at_least: 2500 ms}", OPEN),  # 2,550 told, 100 late at most
        ("switch: {at_least: 2440 ms}", PASS),
        ("switch: {at_most: 2555 ms}", OPEN),  # the array may be rewritten 10 ms after the driver said so
        ("switch: {at_most: 2565 ms}", PASS),
    ],
)
def test_a_switch_that_lacp_decided_is_judged_by_what_linux_bonding_could_tell(
    expectation: str, outcome: Outcome
) -> None:
    detect, switch = Phase(10.0, 1, "expired"), Phase(2550.0, 2, "active", "", late_ms=100.0, early_ms=10.0)
    phases = Phases(detect, switch, *(NO_PHASE for _ in range(4)))
    measured = metrics((FAILURE,), [replace(f, edges=f.edges[:1]) for f in link_down().flows], phases)
    assert check(expectation, measured).outcome is outcome


@pytest.mark.parametrize("limit_us", [100, 200, 300, 1100, 2700])
def test_a_time_that_just_keeps_its_limit_keeps_it_whatever_its_digits(limit_us: int) -> None:
    phases = Phases(Phase(limit_us * 1000 / 1e6, 0, "x"), *(NO_PHASE for _ in range(5)))
    measured = metrics((FAILURE,), [replace(f, edges=f.edges[:1]) for f in link_down().flows], phases)
    exact = tuple(replace(e, edge=replace(e.edge, inject_after_ns=e.edge.inject_before_ns)) for e in measured.edges)
    measured = replace(measured, settings=replace(QUICK, clock_ms=0.0), edges=exact)
    assert check(f"detect: {{at_most: {limit_us} us}}", measured).outcome is PASS
    assert check(f"detect: {{at_least: {limit_us} us}}", measured).outcome is PASS
    assert check(f"detect: {{below: {limit_us} us}}", measured).outcome is FAIL


@pytest.mark.parametrize(
    ("metric", "dead", "outcome", "measured"),
    [
        ("worst_outage", 3, OPEN, None),
        ("median_outage", 3, OPEN, None),
        ("outage_p95", 3, OPEN, None),
        ("median_outage", 2, FAIL, 40),  # of the one that is left
        ("worst_outage", 2, FAIL, 40),
    ],
)
def test_a_queue_pair_that_had_died_before_an_edge_has_no_outage_there(
    metric: str, dead: int, outcome: Outcome, measured: float | None
) -> None:
    flows = []
    for at in range(3):
        died = at < dead
        failure = at_edge(str(at), Relation.RECEIVER, 500, recovered=not died, died=died)
        repair = at_edge(str(at), Relation.RECEIVER, 0 if died else 40)
        flows.append(flow(str(at), failure, replace(repair, sent=0) if died else repair, dst="n"))
    found = check(f"{metric}: {{below: 20 ms, edge: repair, flows: hit}}", metrics((FAILURE, REPAIR), flows))
    assert (found.outcome, found.measured) == (outcome, measured)
    assert measured or found.evidence == "all 3 queue pairs had died before"


@pytest.mark.parametrize(
    "expectation",
    [
        "packets_lost: {at_most: 0, flows: others, edge: repair}",
        "packets_lost: {at_most: 0, flows: others, nic: p0.s0.h1.r0}",
        "packets_lost: {at_least: 0, flows: others}",
        "packets_lost: {at_most: 100, flows: others}",
    ],
)
def test_what_is_asked_of_some_others_does_not_excuse_the_rest(expectation: str) -> None:
    found = verdict(expectation, doubted(link_down(control=7)))
    assert found.outcome is FAIL
    assert [check.text for check in found.checks if check.outcome is FAIL] == [
        "packets lost of other flows at most 0 (control group)"
    ]


@pytest.mark.parametrize(
    ("differences", "outcome", "evidence"),
    [
        ((), PASS, "links, LACP, BGP and routes as before"),
        (("p0.s0.h0: r0p0 down", "x"), FAIL, "p0.s0.h0: r0p0 down and 1 more"),
        (None, OPEN, "the state before and after was not compared"),
    ],
)
def test_the_lab_must_be_as_before(differences: tuple[str, ...] | None, outcome: Outcome, evidence: str) -> None:
    found = check("state_restored: yes", link_down(), RunFacts(state_differences=differences))
    assert (found.outcome, found.evidence) == (outcome, evidence)


@pytest.mark.parametrize("name", ["deviations", "strays"])
def test_what_no_drill_needs_to_ask_for_has_a_line_only_when_it_fails(name: str) -> None:
    calm = verdict("state_restored: yes", link_down(), CLEAN)
    facts = RunFacts(
        state_differences=(),
        deviations=("first", "second") if name == "deviations" else (),
        strays=("first", "second") if name == "strays" else (),
    )
    found = verdict("state_restored: yes", link_down(), facts)
    (more,) = found.checks[len(calm.checks) :]
    assert (more.outcome, more.evidence, found.outcome) == (FAIL, "first and 1 more", FAIL)


def test_a_starved_host_is_never_a_pass_or_a_fail() -> None:
    starved = RunFacts(host_reasons=("the CPUs were 99 % busy",), state_differences=())
    for expectation in ("worst_outage: {below: 1 s}", "worst_outage: {below: 1 ms}"):
        found = verdict(expectation, link_down(), starved)
        assert (found.outcome, found.reasons) == (OPEN, ("the CPUs were 99 % busy",))
        assert found.exit_code == 4


@pytest.mark.parametrize(
    ("expectation", "waited_ms", "outcome"),
    [
        ("worst_outage: {below: 30 ms}", 9, FAIL),  # 40 ms told, in an interval from 39.995: 31 without
        ("worst_outage: {below: 30 ms}", 11, OPEN),
        ("worst_outage: {below: 50 ms}", 100, PASS),  # a busy machine makes nothing shorter
        ("worst_outage: {above: 50 ms, edge: failure}", 100, FAIL),
        ("packets_lost: {at_most: 44}", 100, FAIL),  # no time
        ("worst_outage: {below: 30 ms, edge: repair}", 100, PASS),
    ],
)
def test_a_time_is_not_too_long_by_what_the_lab_waited_for_a_cpu(
    expectation: str, waited_ms: int, outcome: Outcome
) -> None:
    at_ns = FAILURE.inject_before_ns
    facts = replace(CLEAN, waits=Waits((at_ns - 1, at_ns + 10**8), (0, waited_ms * 10**6)))
    found = check(expectation, link_down(), facts)
    assert (found.outcome, "waited for a CPU" in found.evidence) == (outcome, outcome is OPEN)


def test_what_was_waited_after_the_time_was_over_does_not_count() -> None:
    at_ns = FAILURE.inject_before_ns
    waits = Waits((at_ns, at_ns + 41 * 10**6, at_ns + 10**9), (0, 0, 10**9))
    assert check("worst_outage: {below: 30 ms}", link_down(), replace(CLEAN, waits=waits)).outcome is FAIL


def test_what_never_came_back_is_no_matter_of_the_machine() -> None:
    at_ns = FAILURE.inject_before_ns
    facts = replace(CLEAN, waits=Waits((at_ns - 1, at_ns + 10**12), (0, 10**12)))
    found = check("worst_outage: {below: 30 ms, edge: failure}", stalled(died=True), facts)
    assert (found.open_ended, found.outcome) == (True, FAIL)


def test_what_damaged_the_measurement_makes_the_run_inconclusive() -> None:
    damaged = replace(link_down(), inconclusive=("cut failure 0: 1 senders paused longer than the claimed 20 ms",))
    assert verdict("worst_outage: {below: 1 s}", damaged).reasons == damaged.inconclusive


def doubted(measured: DrillMetrics) -> DrillMetrics:
    """With the reasons that the analysis itself would give."""
    return replace(measured, unexplained=unexplained_losses(measured.edges, measured.flows))


@pytest.mark.parametrize("expectation", ["worst_outage: {below: 1 s}", "packets_lost: {at_most: 0, flows: others}"])
def test_loss_in_the_control_group_fails_the_drill_whether_asked_or_not(expectation: str) -> None:
    found = verdict(expectation, doubted(link_down(control=7)))
    assert found.outcome is FAIL
    (broken,) = {c.text: c for c in found.checks if c.outcome is FAIL and c.measured == 7}.values()
    assert broken.margin == -7


def test_loss_before_the_fault_fails_the_drill() -> None:
    found = verdict("worst_outage: {below: 1 s}", doubted(link_down(unexplained=3)))
    assert found.outcome is FAIL
    assert [(c.measured, c.evidence) for c in found.checks if c.outcome is FAIL] == [(3, "c")]


def test_loss_in_the_control_group_says_nothing_when_the_machine_dropped_packets() -> None:
    measured = doubted(link_down(control=7))
    found = verdict("worst_outage: {below: 1 s}", measured, RunFacts(machine_drops=9, state_differences=()))
    assert found.outcome is OPEN
    assert found.reasons[0] == "the machine itself dropped 9 packets: loss figures are not the fabric's"
    assert len(found.reasons) == 2


def test_a_quiet_control_group_is_stated_as_a_check() -> None:
    found = verdict("worst_outage: {below: 1 s}", doubted(link_down()))
    assert [(c.text, c.outcome) for c in found.checks] == [
        ("worst outage below 1 s", PASS),
        ("packets lost of other flows at most 0 (control group)", PASS),
    ]
    assert found.outcome is PASS


def test_no_check_is_passed_by_a_control_group_of_nobody() -> None:
    """On a small fabric a fault may touch every queue pair."""
    measured = link_down()
    flows = tuple(
        replace(each, edges=tuple(replace(at, control=False) for at in each.edges)) for each in measured.flows
    )
    whole, nobody = (
        verdict("worst_outage: {below: 1 s}", doubted(each)) for each in (measured, replace(measured, flows=flows))
    )
    assert [check.text for check in nobody.checks] == ["worst outage below 1 s"]
    assert whole.checks[1].evidence.endswith(" that no fault touches")


def test_a_synthetic_record_goes_through_analysis_to_the_right_verdict() -> None:
    hit, control = synthetic.flow(0), synthetic.flow(1, src="p0.s0.h1.r0", dst="p0.s1.h1.r0")
    cut_ns = 3 * synthetic.S
    dead = [synthetic.Dead(cut_ns, cut_ns + 40 * synthetic.MS)]
    records = synthetic.record(hit, 5 * synthetic.S, dead) + synthetic.record(control, 5 * synthetic.S)
    edges = [synthetic.edge(cut_ns, 6 * synthetic.S, fault="cut")]
    measured = analyse((hit, control), *records.tables, (), edges, (synthetic.S, cut_ns), QUICK)
    found = verdict("worst_outage: {below: 50 ms, flows: hit}", measured)
    assert found.outcome is PASS
    assert found.checks[0].measured == pytest.approx(40, abs=1)
    assert verdict("worst_outage: {below: 30 ms, flows: hit}", measured).outcome is FAIL
    assert verdict("worst_outage: {above: 30 ms, flows: sender, edge: failure}", measured).outcome is PASS


@pytest.mark.parametrize(("loss", "outcome"), [(0.0, PASS), (0.01, FAIL)])
def test_a_healthy_record_passes_the_baseline_and_a_lossy_one_fails_it(loss: float, outcome: Outcome) -> None:
    spec = synthetic.flow(0)
    records = synthetic.record(spec, 5 * synthetic.S, loss=loss)
    measured = analyse((spec,), *records.tables, (), (), (synthetic.S, 6 * synthetic.S), QUICK)
    found = judge(load("healthy-baseline"), measured, CLEAN)
    assert found.outcome is outcome
    assert [c.outcome for c in found.checks if c.text == "packets lost at most 0"] == [outcome]


def test_faults_of_one_instant_are_judged_as_one_and_each_loss_counts_once() -> None:
    one, two = synthetic.flow(0), synthetic.flow(1, src="p0.s0.h1.r0", dst="p0.s1.h1.r0")
    control = synthetic.flow(2, src="p0.s0.h2.r0", dst="p0.s1.h2.r0")
    cut_ns, end_ns = 3 * synthetic.S, 5 * synthetic.S
    dead = [synthetic.Dead(cut_ns, cut_ns + 40 * synthetic.MS)]
    records = synthetic.record(one, end_ns, dead) + synthetic.record(two, end_ns, dead)
    records += synthetic.record(control, end_ns)
    other_link = replace(synthetic.HIT, name="p0.s0.h1.r0.0", nic="p0.s0.h1.r0", host="p0.s0.h1")
    edge = replace(
        synthetic.edge(cut_ns, 6 * synthetic.S, fault="other"),
        links=(synthetic.HIT, other_link),
        together_with=("cut",),
    )
    flows = (one, two, control)
    measured = analyse(flows, *records.tables, (), [edge], (synthetic.S, cut_ns), QUICK)
    assert measured.edge("cut", EdgeKind.FAILURE) is measured.edge("other", EdgeKind.FAILURE)
    assert [measured.edges[0].flows_hit, measured.edges[0].flows_lossy, measured.edges[0].control_lost] == [2, 2, 0]
    for expectation in ("packets_lost: {at_most: 81, fault: cut, flows: hit}", "packets_lost: {at_most: 81}"):
        found = verdict(expectation, measured)
        assert found.outcome is PASS
        assert found.checks[0].measured == pytest.approx(80, abs=1)


@pytest.mark.parametrize(
    ("limit", "outcome"), [("below: 50 ms", OPEN), ("below: 3 ms", FAIL), ("at_least: 1 ms", OPEN)]
)
def test_a_lag_that_was_not_rewritten_is_not_hidden_by_one_that_was(limit: str, outcome: Outcome) -> None:
    switch = Phase(3.5, 0, "p0.s0.h0 bond0 active", "1 of 2 hit LAGs were not rewritten")
    phases = Phases(NO_PHASE, switch, *(NO_PHASE for _ in range(4)))
    flows = [flow("tx", at_edge("tx", Relation.SENDER, 5), src="n")]
    assert check(f"switch: {{{limit}}}", metrics((FAILURE,), flows, phases)).outcome is outcome


@pytest.mark.parametrize(("limit", "outcome"), [("below: 50 ms", OPEN), ("below: 3 ms", FAIL)])
def test_an_edge_at_which_no_lag_was_rewritten_is_not_hidden_by_one_at_which_all_were(
    limit: str, outcome: Outcome
) -> None:
    switch = Phases(NO_PHASE, Phase(3.5, 0, "p0.s0.h0 bond0 active"), *(NO_PHASE for _ in range(4)))
    second = replace(edge(EdgeKind.FAILURE, 3000, 6000), index=1)
    measured = metrics((FAILURE, second), [flow("tx", *(at_edge("tx", Relation.SENDER, 5) for _ in range(2)), src="n")])
    first, last = measured.edges
    seen = replace(measured, edges=(replace(first, phases=switch), last))
    assert check(f"switch: {{{limit}, edge: failure}}", seen).outcome is outcome
    above = replace(last, edge=replace(second, links=()))  # a fault above the ToRs: there is none to rewrite
    assert check("switch: {below: 50 ms, edge: failure}", replace(seen, edges=(seen.edges[0], above))).outcome is PASS


@pytest.mark.parametrize("metric", ["goodput_during", "goodput_after"])
@pytest.mark.parametrize("window_ms", [200, 2_000, 9_000])
def test_goodput_that_nothing_touched_is_all_of_it_within_its_interval(metric: str, window_ms: int) -> None:
    """Packets leave seven at a time, every 7 ms: a window may hold a burst more or less, and so may that of before."""
    spec = synthetic.flow()
    records = synthetic.record(spec, 14 * synthetic.S, burst=7)
    spread: set[float] = set()
    for offset_ms in range(-9, 10):
        at_ns = 4 * synthetic.S + offset_ms * synthetic.MS
        end_ns = at_ns + window_ms * synthetic.MS + offset_ms * synthetic.MS // 3
        measured = analyse([spec], *records.tables, (), [synthetic.edge(at_ns, end_ns)], (synthetic.S, at_ns), QUICK)
        found = check(f"{metric}: {{at_least: 100 %, flows: hit}}", measured)
        assert found.low is not None
        assert found.high is not None
        assert found.low <= 100 <= found.high, (offset_ms, found.measured)
        assert found.high - found.low <= 2 * 1.1 * (100 * 7 / min(window_ms / 2, 2000) + 100 * 7 / 1980)
        spread.add(round(found.measured or 0, 6))
    assert len(spread) > 1, "bursts on the borders of windows are what this is about"


@pytest.mark.parametrize(
    ("expectation", "more_is_worse"),
    [
        ("worst_outage: {above: 30 ms, edge: failure}", True),
        ("packets_lost: {at_most: 45}", True),
        ("goodput_during: {at_least: 95 %, edge: failure, flows: hit}", False),
        ("goodput_during: {at_most: 97 %, edge: failure, flows: hit}", False),
    ],
)
def test_a_judged_figure_carries_the_direction_of_its_metric(expectation: str, more_is_worse: bool) -> None:
    assert check(expectation, link_down()).more_is_worse is more_is_worse


@pytest.mark.parametrize(
    "metric", [each for each in METRICS.values() if each.shape is Shape.LIMITS], ids=lambda it: it.key
)
def test_a_check_that_does_not_tell_its_direction_has_that_of_its_metric_by_words(metric: Metric) -> None:
    """Checks of an older hpn are compared with those of this one: another direction would be another figure."""
    for bound, words in (("at_least", "at least"), ("at_most", "at most")):
        old = Check(f"{metric.words} {words} 1", PASS, 1.0, bound=bound)
        assert old.worse_if_more is metric.larger.is_worse(is_upper=old.is_upper)


def test_a_figure_without_a_side_of_its_own_goes_by_its_limit() -> None:
    assert [Larger.AS_LIMITED.is_worse(is_upper=upper) for upper in (True, False)] == [True, False]


@pytest.mark.parametrize(
    ("lost", "wrong", "outcome", "evidence"),
    [
        (0, 0, OPEN, "cut cost no packet, so none shows where it is"),
        (0, 2, FAIL, "cut was not located for good: nobody was accused; 2 of 9 answers wrong"),
        (1, 0, FAIL, "cut was not located for good: nobody was accused; 0 of 9 answers wrong"),
        (None, 0, FAIL, "cut was not located for good"),  # a run folder that does not say
    ],
)
def test_a_fault_that_hit_no_packet_is_inconclusive_not_missed(
    lost: int | None, wrong: int, outcome: Outcome, evidence: str
) -> None:
    missed = Location("likelihood", 100, (LocatedFault("cut", None, None, 9, wrong, "", lost),), 0, 0)
    found = check("located: {at_most: 3 s}", replace(link_down(), location=missed))
    assert found.outcome is outcome
    assert found.evidence.startswith(evidence)
