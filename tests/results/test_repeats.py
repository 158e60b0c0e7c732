"""Repeats judged as one: far and near end of the interval, what is left out, what flips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from failover.budget import around
from results.junit import Judged, junit_xml
from results.repeats import Repeated, judge_repeats, repeats_from, repeats_json, repeats_summary
from results.terminal import as_text
from results.verdict import Check, Outcome, Verdict, at_least, at_most, decide, holds
from tests.results.sample import MANIFEST
from tests.results.test_terminal import check_golden

PASS, FAIL, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
TEXT = "worst outage below 50 ms"


def outage(measured: float | None, uncertainty: float = 0.0) -> Check:
    low, high = (None, None) if measured is None else around(measured, uncertainty)
    return at_most(TEXT, measured, 50, unit="ms", low=low, high=high, strict=True)


def never(measured: float) -> Check:
    """It did not come back; what was measured is a lower bound."""
    return replace(outage(measured), outcome=FAIL, open_ended=True)


def runs(*checks: Check | str) -> list[Verdict]:
    """One verdict a check; a text makes a run that cannot be trusted."""
    return [decide([outage(1.0)], [one]) if isinstance(one, str) else decide([one]) for one in checks]


def judged(*checks: Check | str) -> Repeated:
    return judge_repeats("cut", runs(*checks))


@pytest.mark.parametrize(
    ("measured", "outcome"),
    [
        ([20.0] * 10, PASS),
        ([20.0, 25, 30, 22, 24, 26, 28, 21, 23, 49], PASS),
        ([20.0, 25, 30, 22, 24, 26, 28, 21, 23, 900], PASS),  # one bad run: it fails and counts, the median holds
        ([40.0, 45, 48, 52, 55, 47, 53, 49, 51, 46], OPEN),  # the interval is on both sides
        ([60.0, 65, 70, 62, 64, 66, 68, 61, 63, 49], FAIL),
        ([50.0] * 5, FAIL),  # below is not at most
        ([10.0, 90.0], OPEN),
    ],
)
def test_the_interval_of_the_median_decides(measured: Sequence[float], outcome: Outcome) -> None:
    found = judged(*(outage(value) for value in measured))
    assert found.outcome is outcome
    assert found.verdict.exit_code == outcome.exit_code
    (estimate,) = found.estimates
    assert estimate.runs == len(measured)
    assert estimate.low is not None
    assert estimate.median is not None
    assert estimate.high is not None
    assert estimate.p95 in measured
    assert estimate.low <= estimate.median <= estimate.high


@pytest.mark.parametrize(("measured", "outcome"), [(96.0, PASS), (95.0, PASS), (94.0, FAIL)])
def test_at_least_is_the_mirror_image(measured: float, outcome: Outcome) -> None:
    found = judged(*[at_least("goodput after at least 95 %", measured, 95, unit="%")] * 5)
    assert found.outcome is outcome
    (check,) = found.verdict.checks
    assert check.margin == measured - 95


@pytest.mark.parametrize(("measured", "outcome"), [(48.0, PASS), (49.5, OPEN), (50.5, OPEN), (52.0, FAIL)])
def test_repeats_do_not_see_more_finely_than_one_run(measured: float, outcome: Outcome) -> None:
    assert judged(*[outage(measured, uncertainty=1.0)] * 10).outcome is outcome


def test_a_run_too_near_the_limit_to_be_judged_alone_still_measured_something() -> None:
    near = [outage(49.7, uncertainty=1.0)] * 2
    found = judged(*[outage(30.0, uncertainty=1.0)] * 10, *near)
    assert found.answers == (PASS,) * 10 + (OPEN,) * 2
    assert (found.left_out, found.estimates[0].runs, found.outcome) == (0, 12, PASS)


@pytest.mark.parametrize(("starved", "outcome"), [(0, PASS), (3, PASS), (4, OPEN), (9, OPEN)])
def test_more_than_a_third_left_out_says_nothing(starved: int, outcome: Outcome) -> None:
    found = judged(*[outage(20.0)] * (9 - starved), *["the CPUs were busy"] * starved)
    assert (found.left_out, found.outcome) == (starved, outcome)
    assert bool(found.reasons) is (outcome is OPEN)
    assert sum(each.runs for each in found.estimates) == 9 - starved


def test_a_fail_of_runs_that_cannot_be_trusted_does_not_count() -> None:
    bad = decide([outage(900.0)], ["starved"])
    found = judge_repeats("cut", [*runs(*[outage(20.0)] * 4), bad])
    assert (found.outcome, found.left_out, found.estimates[0].p95) == (PASS, 1, 20.0)


def test_an_expectation_that_many_runs_could_not_tell_is_inconclusive_by_itself() -> None:
    other = at_most("queue pair deaths at most 0", 0, 0)
    found = judge_repeats("cut", [decide([outage(None if n < 2 else 20.0), other]) for n in range(5)])
    assert [(each.outcome, each.left_out) for each in found.estimates] == [(OPEN, 2), (PASS, 0)]
    assert (found.outcome, found.left_out) == (OPEN, 0)


def test_what_never_came_back_is_longer_than_any_limit() -> None:
    most = judged(*[never(40.0)] * 11, outage(20.0))
    assert (most.outcome, most.estimates[0].median, most.estimates[0].p95) == (FAIL, None, None)
    one = judged(never(40.0), *[outage(20.0)] * 12)
    assert (one.outcome, one.estimates[0].median, one.estimates[0].p95) == (PASS, 20.0, None)
    assert one.unstable


def test_an_event_that_never_happened_breaks_an_order() -> None:
    absent = replace(at_least("order carrier, lag", None, 0, unit="ms"), outcome=FAIL)
    assert judged(*[absent] * 3).outcome is FAIL


@pytest.mark.parametrize(
    ("held", "outcome"),
    [
        ([True] * 5, PASS),
        ([True] * 9 + [False], FAIL),
        ([True] * 3 + [None] * 2, OPEN),
        ([None] * 3, OPEN),
        ([True] * 4 + [None], PASS),
    ],
)
def test_a_fact_must_hold_in_every_run(held: Sequence[bool | None], outcome: Outcome) -> None:
    found = judged(*(holds("state restored", one) for one in held))
    assert found.outcome is outcome
    assert found.estimates[0].kept == sum(one is True for one in held)


def test_a_check_that_only_a_broken_run_states_was_kept_by_the_others() -> None:
    stray = at_most("packets lost outside fault windows at most 0", 3, 0)
    found = judge_repeats("cut", [*runs(*[outage(20.0)] * 11), decide([outage(20.0), stray])])
    last = found.estimates[-1]
    assert (last.outcome, last.runs, last.kept, last.median) == (PASS, 12, 11, 0.0)


@pytest.mark.parametrize(
    ("answers", "unstable"),
    [([20.0, 20.0], False), ([20.0, 90.0], True), ([90.0, 90.0], False), ([20.0, None], False)],
)
def test_runs_that_flip_make_a_drill_unstable(answers: Sequence[float | None], unstable: bool) -> None:
    found = judged(*(outage(value) for value in answers))
    assert found.unstable is unstable
    assert ("UNSTABLE" in as_text(repeats_summary(found))) is unstable


def test_no_runs_say_nothing() -> None:
    assert judge_repeats("cut", []).outcome is OPEN
    assert judged("starved", "starved").outcome is OPEN


def sample() -> Repeated:
    """Six runs of one drill, one of them starved, one that never came back."""
    worst = [*(outage(ms, uncertainty=0.5) for ms in (18.0, 22.0, 25.0, 21.0)), never(1900.0)]
    verdicts = [
        decide(
            [check, at_least("goodput after at least 95 %", 98 + n / 2, 95, unit="%"), holds("state restored", True)]
        )
        for n, check in enumerate(worst)
    ]
    return judge_repeats("link-down", [*verdicts, decide([outage(80.0)], ["the CPUs were 99 % busy"])])


def test_the_summary_reads_as_agreed() -> None:
    check_golden("repeats.txt", as_text(repeats_summary(sample())))


def test_repeats_survive_their_file() -> None:
    assert repeats_from(repeats_json([sample()])) == (sample(),)


def test_junit_has_a_suite_over_all_repeats_beside_those_of_the_runs() -> None:
    made = [
        Judged(replace(MANIFEST, repeat=n), verdict) for n, verdict in enumerate(runs(outage(20.0), outage(90.0)), 1)
    ]
    text = junit_xml(made, [sample(), judged(*[outage(90.0)] * 3)])
    suites = [suite for suite in JUnitXml.fromstring(text) if isinstance(suite, TestSuite)]
    assert [suite.name for suite in suites] == [
        "link-down #1",
        "link-down #2",
        "link-down over 6 repeats",
        "cut over 3 repeats",
    ]
    mixed, broken = ([case for case in suite if isinstance(case, TestCase)] for suite in suites[2:])
    assert [case.name for case in mixed] == [TEXT, "goodput after at least 95 %", "state restored", "runs agree"]
    assert [type(case.result[0]) if case.result else None for case in mixed] == [Skipped, None, None, Skipped]
    assert mixed[-1].result[0].message == "unstable: pass, pass, pass, pass, fail, inconclusive"
    assert isinstance(broken[0].result[0], Failure)
    assert "margin -40.0 ms" in broken[0].result[0].message
