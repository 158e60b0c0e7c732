"""Goodput of senders that were late: what they left out is the machine's loss, and no limit passes or fails by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hpn.failover.analysis.model import QUICK, EdgeKind
from hpn.results.judge.verdict import Check, Outcome
from hpn.scenarios.run.judgement import judge_measured
from hpn.scenarios.run.measurement import Facts, Measurement
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.pacing import Schedule
from hpn.traffic.streams.records import RECEIVED, SENT
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow
from tests.results.sample import LOAD
from tests.scenarios.measured import drill

PASS, FAIL, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
DOWN, UP, END = 4 * S, 6 * S, 10 * S
BEFORE = tuple(Dead(at, at + 80 * MS) for at in (2 * S, 3 * S))
AFTER = tuple(Dead(at, at + 80 * MS) for at in (8 * S + 500 * MS, 9 * S))
"""Two stalls of 80 ms, of which a sender makes up for 11 ms each: 6.9 % of two seconds."""
AS_MUCH = tuple(Dead(each.start_ns, each.start_ns + 69 * MS) for each in AFTER)
HIT, OTHER = flow(0), flow(1, src="p0.s0.h1.r0", dst="p0.s1.h1.r0")


def paced(
    spec: FlowSpec, stalls: tuple[Dead, ...] = (), full: tuple[Dead, ...] = (), lost: tuple[Dead, ...] = ()
) -> Records:
    """What the real schedule sends while its process stands still, while the kernel has no room, and what is lost."""
    schedule, one = Schedule([spec.rate_pps], MS), np.array([0])
    schedule.start(S)
    rows: list[tuple[int, int, int, int]] = []
    for at_ns in range(S, END + S // 2, MS):
        if any(stall.start_ns <= at_ns < stall.end_ns for stall in stalls):
            continue
        due = schedule.due(at_ns)
        if due[0] and any(each.start_ns <= at_ns < each.end_ns for each in full):
            schedule.hold_up(one)
        elif due[0]:
            rows.append((at_ns, int(due[0]), int(schedule.next_seq[0]), int(schedule.given_up(one)[0])))
            schedule.advance(one, due)
    sent = np.zeros(len(rows), SENT)
    sent["flow"] = spec.id
    sent["sent_ns"], sent["count"], sent["seq"], sent["given_up"] = zip(*rows, strict=True)
    received = np.zeros(int(sent["count"].sum()), RECEIVED)
    received["flow"], received["seq"] = spec.id, np.arange(len(received))
    received["sent_ns"] = np.repeat(sent["sent_ns"], sent["count"])
    received["received_ns"] = received["sent_ns"] + MS // 20
    for gap in lost:
        received = received[(received["sent_ns"] < gap.start_ns) | (received["sent_ns"] >= gap.end_ns)]
    return Records(sent, received)


def check(expectation: str, *records: Records, flows: tuple[FlowSpec, ...] = (HIT,)) -> Check:
    facts = Facts(
        expectations=drill(expectation).expectations,
        settings=QUICK,
        flows=flows,
        edges=(edge(DOWN, UP), edge(UP, END, EdgeKind.REPAIR)),
        start_ns=S,
        healthy_end_ns=DOWN,
        end_ns=END,
        host=LOAD,
        machine_drops=0,
        differences=(),
    )
    of_all = records[0] if len(records) == 1 else records[0] + records[1]
    return judge_measured(Measurement(facts, (), *of_all.tables))[1].checks[0]


@pytest.mark.parametrize(
    ("records", "outcome", "late"),
    [
        (paced(HIT), PASS, False),
        (paced(HIT, AFTER), OPEN, True),
        (paced(HIT, full=AFTER), FAIL, False),
        (paced(HIT, lost=AFTER), FAIL, False),
        (paced(HIT, AFTER, lost=(Dead(9 * S + 200 * MS, 9 * S + 500 * MS),)), FAIL, True),
    ],
    ids=["on time", "late", "held up by the kernel", "lost by the network", "late, and lost besides"],
)
def test_what_late_senders_left_out_is_not_the_network_s_loss(records: Records, outcome: Outcome, late: bool) -> None:
    found = check("goodput_after: {at_least: 95 %, flows: hit, edge: repair}", records)
    assert (found.outcome, "late senders left out up to" in found.evidence) == (outcome, late)
    if outcome is OPEN:
        assert found.measured == pytest.approx(93.1, abs=0.2)
        assert found.high == pytest.approx(100, abs=0.2)


@pytest.mark.parametrize(
    ("records", "outcome"), [(paced(HIT, AFTER), OPEN), (paced(HIT, lost=AFTER), PASS), (paced(HIT), FAIL)]
)
def test_nor_does_it_keep_an_upper_limit(records: Records, outcome: Outcome) -> None:
    assert check("goodput_after: {at_most: 95 %, flows: hit, edge: repair}", records).outcome is outcome


def test_goodput_is_not_whole_because_the_senders_were_late_before_the_fault() -> None:
    """The network takes 6.9 %, and the machine took as much of what it is compared with."""
    found = check("goodput_after: {at_least: 95 %, flows: hit, edge: repair}", paced(HIT, BEFORE, lost=AS_MUCH))
    assert found.outcome is OPEN
    assert found.measured == pytest.approx(100, abs=0.2)
    assert found.low == pytest.approx(93.1, abs=0.2)


def test_a_nic_whose_senders_were_late_does_not_hide_one_that_lost_goodput() -> None:
    """The first lacks more, but only the second lacks what its senders have sent."""
    late, lossy = paced(HIT, AFTER), paced(OTHER, lost=(Dead(9 * S, 9 * S + 120 * MS),))
    expectation = "goodput_after: {at_least: 95 %, edge: repair}"
    assert check(expectation, late, lossy, flows=(HIT, OTHER)).outcome is FAIL
    assert check(expectation, late, paced(OTHER), flows=(HIT, OTHER)).outcome is OPEN


def test_a_stall_counts_at_most_as_long_as_the_window_that_it_touches() -> None:
    found = check("goodput_after: {at_least: 95 %, flows: hit, edge: repair}", paced(HIT, (Dead(7 * S, 9 * S),)))
    assert found.outcome is OPEN
    assert found.high is not None
    assert found.high <= 151


def test_a_replacement_flow_is_compared_with_what_the_replaced_one_left_out() -> None:
    new = replace(OTHER, replaces=HIT.id)
    found = check("goodput_after: {at_least: 95 %, edge: repair}", paced(HIT, BEFORE), paced(new), flows=(HIT, new))
    assert found.measured == pytest.approx(107.4, abs=0.2)
    assert found.low == pytest.approx(100, abs=0.3)
