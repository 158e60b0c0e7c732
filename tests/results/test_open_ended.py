"""What is only known to have lasted at least so long says so, with no room left, wherever a person or program reads."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hpn.failover.analysis.congestion import Congestion
from hpn.failover.analysis.model import DrillMetrics, Relation
from hpn.failover.analysis.offered import Offered
from hpn.results.export.junit import Judged, junit_xml
from hpn.results.export.markdown import drills_summary
from hpn.results.judge.repeats.judging import judge_repeats
from hpn.results.judge.repeats.view import repeats_summary
from hpn.results.judge.verdict import Check, Outcome, Verdict
from hpn.results.page.sections import check_rows
from hpn.results.run.figures import verdict_files
from hpn.results.text.checks import describe
from hpn.results.text.terminal import summary
from hpn.scenarios.expect.evidence import RunFacts
from hpn.scenarios.expect.verdict import judge
from tests.results.sample import MANIFEST
from tests.results.shown import as_text
from tests.scenarios.measured import FAILURE, REPAIR, at_edge, drill, edge_result, flow, metrics

FAIL, OPEN = Outcome.FAIL, Outcome.INCONCLUSIVE


def died(lost: int = 0) -> DrillMetrics:
    """A queue pair that dies half a second after the failure, having lost so much, and a flow that came back."""
    dead = flow("dead", at_edge("dead", Relation.RECEIVER, lost, recovered=not lost, died=True), dst="n")
    return metrics((FAILURE,), (dead, flow("back", at_edge("back", Relation.SENDER, 90), src="n")))


def judged(expectation: str, measured: DrillMetrics) -> Verdict:
    return judge(drill(expectation), measured, RunFacts(state_differences=()))


def media(verdict: Verdict, measured: DrillMetrics) -> list[str]:
    """The first expectation as each medium has it."""
    run = Judged(MANIFEST, verdict)
    row = check_rows(verdict.checks)[0]
    shown = [as_text(summary(MANIFEST, measured, verdict), 200).splitlines()]
    line = next(line for line in shown[0] if "worst outage" in line and "edge" not in line.split("worst")[0])
    return [
        " ".join(line.split()),
        " ".join((row.measured, row.interval, row.limit, row.margin)),
        describe(verdict.checks[0]),
        junit_xml([run]),
        drills_summary([run]).replace("\\", "").replace("&gt;", ">").replace("&lt;", "<"),
    ]


@pytest.mark.parametrize("lost", [0, 400])
def test_a_dead_queue_pair_reads_the_same_everywhere(lost: int) -> None:
    """Its data may all have arrived: then it was down from its death on, 1,500 ms to the window's end at least."""
    measured = died(lost)
    verdict = judged("worst_outage: {below: 100 ms}", measured)
    check = verdict.checks[0]
    assert (check.outcome, check.open_ended, check.never) == (FAIL, True, True)
    assert (check.measured, check.margin) == (1500, -1400)
    for text in media(verdict, measured):
        plain = text.replace("&gt;", ">").replace("&lt;", "<")
        assert ">= 1500 ms" in plain
        assert "<= -1400 ms" in plain
        assert " interval " not in plain.replace("measured interval limit", "")
    stored = json.loads(verdict_files(verdict)["verdict.json"])["checks"][0]
    known = {"measured": 1500, "low": 1500, "high": None, "margin": -1400, "open_ended": True, "never": True}
    assert stored.items() >= known.items()


def test_what_will_never_end_keeps_no_limit_and_shows_no_room() -> None:
    check = judged("worst_outage: {below: 5 s}", died()).checks[0]
    assert (check.outcome, check.margin) == (FAIL, None)
    assert describe(check).startswith("measured >= 1500 ms, limit 5000 ms, margin < 0 ms, dead at cut failure 0")
    absent = Check("order a, b", FAIL, None, 0.0, unit="ms", bound="at_least", never=True)
    assert describe(absent).startswith("measured never, limit 0.00 ms, margin < 0 ms")


@pytest.mark.parametrize(("limit", "outcome", "margin"), [("5 s", OPEN, 3000), ("1 s", FAIL, -1000)])
def test_what_the_end_of_the_run_cut_off_fails_only_beyond_its_limit(
    limit: str, outcome: Outcome, margin: float
) -> None:
    stuck = metrics((FAILURE,), (flow("rx", at_edge("rx", Relation.RECEIVER, 400, recovered=False), dst="n"),))
    check = judged(f"worst_outage: {{below: {limit}}}", stuck).checks[0]
    assert (check.outcome, check.measured, check.margin) == (outcome, 2000, margin)
    assert f"margin <= {margin} ms" in describe(check)


def test_over_repeats_a_lower_bound_is_one_and_a_median_beyond_it_too() -> None:
    stuck = metrics((FAILURE,), (flow("rx", at_edge("rx", Relation.RECEIVER, 400, recovered=False), dst="n"),))
    bound = judged("worst_outage: {below: 5 s}", stuck)
    back = judged("worst_outage: {below: 5 s}", metrics((FAILURE,), (flow("rx", at_edge("rx", Relation.SENDER, 90)),)))
    found = judge_repeats("cut", [bound, bound, bound, back])
    assert found.outcome is OPEN
    text = as_text(repeats_summary(found), 200)
    assert text.count(">= 2000 ms") == 3  # the worst, the median, the p95
    check = found.verdict.checks[0]
    assert (check.open_ended, check.measured) == (True, 2000)
    assert "measured >= 2000 ms" in describe(check)


def test_the_table_of_edges_shows_no_short_outage_of_a_queue_pair_that_died() -> None:
    measured = died()
    dead = (flow("dead", at_edge("dead", Relation.RECEIVER, 0, died=True), dst="n"),)
    alone = replace(measured, edges=(edge_result(FAILURE, [each.edges[0] for each in dead]),), flows=dead)
    for each in (measured, alone):
        shown = as_text(summary(MANIFEST, each, judged("worst_outage: {below: 5 s}", each)), 200)
        row = next(line for line in shown.splitlines() if line.startswith("cut failure 0"))
        assert ">= 1500 " in row, "as the expectation below"
        assert "measured >= 1500 ms" in describe(judged("worst_outage: {below: 5 s}", each).checks[0])
    late = tuple(replace(each, stopped_at_ns=FAILURE.window_end_ns) for each in dead)
    shown = as_text(summary(MANIFEST, replace(alone, flows=late), judged("worst_outage: {below: 5 s}", alone)), 200)
    assert " never " in shown


def test_a_queue_pair_that_died_in_a_later_window_never_comes_back_to_the_one_before() -> None:
    """Congestion began with the failure, and its retries were used up after the repair."""
    failure = at_edge("dead", Relation.RECEIVER, 400, recovered=False)
    dead = flow("dead", failure, at_edge("dead", Relation.RECEIVER, 300, died=True, at_ms=3000), dst="n")
    check = judged("worst_outage: {below: 60 s, edge: failure}", metrics((FAILURE, REPAIR), (dead,))).checks[0]
    assert (check.outcome, check.never) == (FAIL, True)


def test_a_queue_pair_that_died_without_any_fault_keeps_no_limit() -> None:
    """Of congestion alone: there is no edge that it could have died after."""
    healthy = metrics((), (replace(flow("dead"), stopped_at_ns=3 * 10**9),))
    check = judged("worst_outage: {below: 60 s}", healthy).checks[0]
    assert (check.outcome, check.never, check.evidence) == (FAIL, True, "dead: its queue pair died")


@pytest.mark.parametrize(("dead", "outcome"), [(True, FAIL), (False, OPEN)])
def test_failover_of_a_queue_pair_that_died_keeps_no_limit_either(dead: bool, outcome: Outcome) -> None:
    split = Congestion(300, 1, 2, failover_ms=100.0, low_ms=99.0, high_ms=101.0, over=False)
    result = replace(at_edge("x", Relation.RECEIVER, 400, recovered=False, died=dead), congestion=split)
    measured = replace(metrics((FAILURE,), (flow("x", result, dst="n"),)), offered=Offered((), ()))
    check = judged("failover_outage: {below: 5 s, edge: failure}", measured).checks[0]
    assert (check.outcome, check.never) == (outcome, dead)
