"""Repeats judged as one: every run gates, statistics by name, what is left out, what flips, what N runs prove."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from hpn.failover.analysis.budget import around
from hpn.results.export.junit import Judged, junit_xml
from hpn.results.judge.repeats.judging import judge_repeats
from hpn.results.judge.repeats.repeated import Repeated, figures, repeats_json
from hpn.results.judge.repeats.statistic import Statistic
from hpn.results.judge.repeats.view import repeats_summary
from hpn.results.judge.verdict import Check, Outcome, Verdict, at_least, at_most, decide, holds
from tests.results.sample import MANIFEST, repeats_from
from tests.results.shown import as_text
from tests.results.test_terminal import check_golden

PASS, FAIL, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
TEXT = "worst outage below 50 ms"


def outage(measured: float | None, uncertainty: float = 0.0) -> Check:
    low, high = (None, None) if measured is None else around(measured, uncertainty)
    return at_most(TEXT, measured, 50, unit="ms", low=low, high=high, strict=True)


def never(measured: float) -> Check:
    """It did not come back; what was measured is a lower bound."""
    return replace(outage(measured), outcome=FAIL, open_ended=True, never=True)


def runs(*checks: Check | str) -> list[Verdict]:
    """One verdict a check; a text makes a run that cannot be trusted."""
    return [decide([outage(1.0)], [one]) if isinstance(one, str) else decide([one]) for one in checks]


def judged(*checks: Check | str) -> Repeated:
    return judge_repeats("cut", runs(*checks))


def test_the_p95_of_what_should_be_high_is_its_low_tail() -> None:
    """Goodput of 40, 61 ... 79 % had a p95 of 78 %, which tells of the best runs."""
    shares = [40.0, *(60.0 + at for at in range(1, 20))]
    found = judged(*(at_least("goodput during at least 45 % of before", each, 45, unit="%") for each in shares))
    (estimate,) = found.estimates
    assert (estimate.p95, estimate.worst) == (61.0, 40.0)
    below = judged(*(outage(each) for each in shares))
    assert (below.estimates[0].p95, below.estimates[0].worst) == (78.0, 79.0)


@pytest.mark.parametrize(
    ("measured", "outcome"),
    [
        ([20.0] * 10, PASS),
        ([20.0, 25, 30, 22, 24, 26, 28, 21, 23, 49], PASS),
        ([20.0, 25, 30, 22, 24, 26, 28, 21, 23, 900], FAIL),  # one bad run: the median is far from the limit
        ([20.0] * 61 + [900.0] * 39, FAIL),
        ([60.0, 65, 70, 62, 64, 66, 68, 61, 63, 49], FAIL),
        ([50.0] * 5, FAIL),  # below is not at most
        ([10.0, 90.0], FAIL),
    ],
)
def test_every_run_must_keep_a_limit(measured: Sequence[float], outcome: Outcome) -> None:
    found = judged(*(outage(value) for value in measured))
    assert found.outcome is outcome
    assert found.verdict.exit_code == outcome.exit_code
    (estimate,) = found.estimates
    assert (estimate.runs, estimate.worst) == (len(measured), max(measured))
    assert estimate.worst_run == measured.index(max(measured)) + 1


@pytest.mark.parametrize(("measured", "outcome"), [(96.0, PASS), (95.0, PASS), (94.0, FAIL)])
def test_at_least_is_the_mirror_image(measured: float, outcome: Outcome) -> None:
    checks = [at_least("goodput after at least 95 %", value, 95, unit="%") for value in (99.0, measured, 98.0)]
    found = judged(*checks)
    assert found.outcome is outcome
    (check,) = found.verdict.checks
    assert (check.measured, check.margin) == (measured, measured - 95)


def test_a_run_too_near_the_limit_measured_something_and_is_not_passed() -> None:
    near = [outage(49.7, uncertainty=1.0)] * 2
    found = judged(*[outage(30.0, uncertainty=1.0)] * 10, *near)
    assert found.answers == (PASS,) * 10 + (OPEN,) * 2
    assert (found.left_out, found.estimates[0].runs, found.outcome) == (0, 12, OPEN)
    assert judged(*near, outage(90.0)).outcome is FAIL


def over(statistic: Statistic, *checks: Check) -> Repeated:
    return judged(*(replace(check, over=statistic) for check in checks))


@pytest.mark.parametrize(
    ("measured", "outcome"),
    [
        ([20.0, 25, 30, 22, 24, 26, 28, 21, 23, 900], PASS),
        ([20.0] * 61 + [900.0] * 39, PASS),
        ([40.0, 45, 48, 52, 55, 47, 53, 49, 51, 46], OPEN),  # the interval is on both sides
        ([60.0, 65, 70, 62, 64, 66, 68, 61, 63, 49], FAIL),
        ([50.0] * 5, FAIL),
        ([20.0] * 5, PASS),
        ([20.0] * 4, OPEN),  # too few to tell a median
    ],
)
def test_a_median_asked_for_by_name_is_judged_by_its_interval(measured: Sequence[float], outcome: Outcome) -> None:
    found = over(Statistic.MEDIAN, *(outage(value) for value in measured))
    assert found.outcome is outcome
    assert bool(found.estimates[0].too_few) is (len(measured) < 5)


@pytest.mark.parametrize(("measured", "outcome"), [(48.0, PASS), (49.5, OPEN), (50.5, OPEN), (52.0, FAIL)])
def test_a_median_of_repeats_does_not_see_more_finely_than_one_run(measured: float, outcome: Outcome) -> None:
    assert over(Statistic.MEDIAN, *[outage(measured, uncertainty=1.0)] * 10).outcome is outcome


@pytest.mark.parametrize(
    ("good", "bad", "outcome"),
    [(59, 0, PASS), (58, 0, OPEN), (91, 1, OPEN), (92, 1, PASS), (90, 10, FAIL), (95, 5, OPEN)],
)
def test_a_p95_is_judged_by_how_many_runs_keep_the_limit(good: int, bad: int, outcome: Outcome) -> None:
    """59 and 93 are the sample sizes of Wilks (1941); 5 of 100 show neither more nor less than 5 %."""
    assert over(Statistic.P95, *[outage(20.0)] * good, *[outage(90.0)] * bad).outcome is outcome


def test_the_middle_of_a_figure_and_a_lower_bound_is_a_lower_bound() -> None:
    """It lies below the smallest lower bound, and was shown as if every run had ended."""
    going_on = at_most(TEXT, 40.0, 50, unit="ms")
    found = judged(outage(2.0), replace(going_on, open_ended=True))
    (estimate,) = found.estimates
    assert figures(estimate)[:2] == (">= 40.0 ms", ">= 21.0 ms")
    over_median = replace(estimate, over=Statistic.MEDIAN)
    assert replace(found, estimates=(over_median,)).verdict.checks[0].open_ended
    assert figures(judged(outage(2.0), outage(3.0), replace(going_on, open_ended=True)).estimates[0])[1] == "3.00 ms"


@pytest.mark.parametrize("runs", [1, 2, 3, 4, 5, 10])
def test_no_interval_is_offered_below_five_runs(runs: int) -> None:
    found = judged(*[outage(20.0 + n) for n in range(runs)])
    (estimate,) = found.estimates
    assert (estimate.low is not None, estimate.high is not None, estimate.interval) == ((runs >= 5,) * 3)
    assert ("95 % bootstrap interval 2" in found.verdict.checks[0].evidence) is (runs >= 5)
    assert ("to 2" in as_text(repeats_summary(found))) is (runs >= 5)


@pytest.mark.parametrize(
    ("passed", "failed", "starved", "said"),
    [
        (10, 0, 0, "10 of 10 trusted runs pass: failure rate below 26 % at 95 % confidence (one-sided exact binomial)"),
        (61, 39, 0, "61 of 100 trusted runs pass: failure rate below 48 % at 95 %"),
        (100, 0, 0, "failure rate below 2.96 %"),
        (9, 0, 2, "9 of 9 trusted runs pass: failure rate below 29 %"),
        (1, 0, 0, "failure rate below 95 %"),
        (0, 3, 0, ""),
    ],
)
def test_the_summary_says_what_so_many_runs_can_prove(passed: int, failed: int, starved: int, said: str) -> None:
    found = judged(*[outage(20.0)] * passed, *[outage(90.0)] * failed, *["the CPUs were busy"] * starved)
    text = as_text(repeats_summary(found))
    assert said in text
    assert ("confidence" in text) is bool(said)


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


def test_what_a_trusted_run_broke_is_broken_whatever_became_of_the_others() -> None:
    found = judged(outage(900.0), *["the CPUs were busy"] * 5)
    assert (found.outcome, found.left_out, found.verdict.exit_code, found.verdict.reasons) == (FAIL, 5, 1, ())
    assert "because 5 of 6 runs cannot be trusted" in as_text(repeats_summary(found))


def test_an_expectation_that_many_runs_could_not_tell_is_inconclusive_by_itself() -> None:
    other = at_most("queue pair deaths at most 0", 0, 0)
    found = judge_repeats("cut", [decide([outage(None if n < 2 else 20.0), other]) for n in range(5)])
    assert [(each.outcome, each.left_out) for each in found.estimates] == [(OPEN, 2), (PASS, 0)]
    assert (found.outcome, found.left_out) == (OPEN, 0)


def test_what_never_came_back_is_longer_than_any_limit() -> None:
    most = over(Statistic.MEDIAN, *[never(40.0)] * 11, outage(20.0))
    assert (most.outcome, most.estimates[0].median, most.estimates[0].p95) == (FAIL, None, None)
    one = over(Statistic.MEDIAN, never(40.0), *[outage(20.0)] * 12)
    assert (one.outcome, one.estimates[0].median, one.estimates[0].p95) == (PASS, 20.0, None)
    assert one.unstable
    every = judged(*[outage(20.0)] * 12, never(40.0))
    assert (every.outcome, every.estimates[0].worst, every.estimates[0].worst_run) == (FAIL, None, 13)


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


def test_a_check_that_only_a_broken_run_states_fails_them_all() -> None:
    stray = at_most("packets lost outside fault windows at most 0", 3, 0)
    found = judge_repeats("cut", [*runs(*[outage(20.0)] * 11), decide([outage(20.0), stray])])
    last = found.estimates[-1]
    assert (last.outcome, last.runs, last.kept, last.median, last.worst_run) == (FAIL, 12, 11, 0.0, 12)


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


def test_what_no_run_could_have_seen_is_no_outage_of_nothing_over_repeats_either() -> None:
    """The worst bound is of the run that is named, the median's the median of all bounds."""
    highs = (0.5, 0.8383, 0.7, 0.6, 0.65)
    unseen = [at_most(TEXT, 0.0, 50, unit="ms", low=0.0, high=high, strict=True) for high in highs]
    found = judged(*unseen)
    row = as_text(repeats_summary(found)).splitlines()[-1]
    assert row.count("< 0.84 ms") == 2, "worst and p95"
    assert "< 0.65 ms" in row
    assert "< 0.84 ms #2 " in " ".join(row.split())
    assert "worst < 0.84 ms in run 2, median < 0.65 ms" in found.verdict.checks[0].evidence
    assert found.estimates[0].high is not None
    assert found.estimates[0].high >= 0.65, "the bound of the median lies in its interval"
    assert (found.verdict.checks[0].low, found.verdict.checks[0].high) == (0.0, 0.8383)
    seen = judged(outage(20.0, uncertainty=0.5), outage(20.0, uncertainty=0.5))
    assert "20.0 ms" in as_text(repeats_summary(seen)).splitlines()[-1]


def test_repeats_survive_their_file() -> None:
    assert repeats_from(repeats_json([sample()])) == (sample(),)


def test_an_estimate_tells_what_is_measured_whatever_the_limit() -> None:
    """Files of two limits are joined by it; one of an older hpn, which has none, is read."""
    assert [each.subject for each in sample().estimates] == ["worst outage", "goodput after", "state restored"]
    (old,) = json.loads(repeats_json([sample()]))
    for estimate in old["estimates"]:
        del estimate["subject"]
    (read,) = repeats_from(json.dumps([old]).encode())
    assert read.verdict == sample().verdict


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
    assert [type(case.result[0]) if case.result else None for case in mixed] == [Failure, None, None, Skipped]
    assert mixed[-1].result[0].message == "unstable: pass, pass, pass, pass, fail, inconclusive"
    assert isinstance(broken[0].result[0], Failure)
    assert "margin -40.0 ms" in broken[0].result[0].message
