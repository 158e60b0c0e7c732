"""Four answers: how a figure is held against a limit and how checks add up."""

from __future__ import annotations

import pytest

from hpn.results.judge.verdict import Check, Outcome, Verdict, at_least, at_most, decide, holds, worst_exit_code

PASS, FAIL, UNSURE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("measured", "low", "high", "outcome", "margin"),
    [
        (20.0, 19.0, 21.0, PASS, 30.0),
        (80.0, 79.0, 81.0, FAIL, -30.0),
        (49.5, 49.0, 50.5, UNSURE, 0.5),
        (50.5, 49.0, 51.0, UNSURE, -0.5),
        (40.7, 40.7, 55.4, UNSURE, 9.3),
        (50.0, 50.0, 50.0, PASS, 0.0),
        (50.0, 49.0, 50.0, PASS, 0.0),
        (51.0, 50.0, 52.0, UNSURE, -1.0),
        (None, None, None, UNSURE, None),
        (50.0, None, None, PASS, 0.0),
    ],
)
def test_a_figure_is_judged_by_its_whole_interval(
    measured: float | None, low: float | None, high: float | None, outcome: Outcome, margin: float | None
) -> None:
    check = at_most("worst outage", measured, 50.0, unit="ms", low=low, high=high)
    assert check.outcome is outcome
    assert check.margin == (None if margin is None else pytest.approx(margin))


@pytest.mark.parametrize(("low", "high", "outcome"), [(49, 50, UNSURE), (50, 51, FAIL), (48, 49, PASS)])
def test_below_leaves_the_limit_itself_out(low: float, high: float, outcome: Outcome) -> None:
    assert at_most("x", low, 50, low=low, high=high, strict=True).outcome is outcome
    assert at_least("x", -low, -50, low=-high, high=-low, strict=True).outcome is outcome


def test_at_least_is_the_mirror_image() -> None:
    assert (at_least("goodput", 50, 45).outcome, at_least("goodput", 50, 45).margin) == (PASS, 5)
    assert (at_least("goodput", 40, 45).outcome, at_least("goodput", 40, 45).margin) == (FAIL, -5)


def test_facts_can_be_unknown() -> None:
    assert [holds("restored", true).outcome for true in (True, False, None)] == [PASS, FAIL, UNSURE]


@pytest.mark.parametrize(
    ("outcomes", "reasons", "verdict", "exit_code"),
    [
        ([PASS, PASS], (), PASS, 0),
        ([PASS, FAIL], (), FAIL, 1),
        ([PASS, UNSURE], (), UNSURE, 4),
        ([UNSURE, FAIL], (), FAIL, 1),
        ([PASS, PASS], ("starved",), UNSURE, 4),
        ([FAIL], ("starved",), UNSURE, 4),
    ],
)
def test_checks_add_up_and_a_starved_run_is_never_a_pass_or_a_fail(
    outcomes: list[Outcome], reasons: tuple[str, ...], verdict: Outcome, exit_code: int
) -> None:
    found = decide([Check("x", outcome) for outcome in outcomes], reasons)
    assert (found.outcome, found.exit_code, found.reasons) == (verdict, exit_code, reasons)


def test_a_drill_without_expectations_says_nothing() -> None:
    assert decide([]).outcome is UNSURE
    assert decide([]).reasons == ("nothing was checked: the drill has no expectations",)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [((), 0), ((PASS, PASS), 0), ((PASS, UNSURE), 4), ((UNSURE, FAIL, PASS), 1), ((FAIL, UNSURE), 1)],
)
def test_a_fail_among_several_runs_is_never_called_inconclusive(outcomes: tuple[Outcome, ...], code: int) -> None:
    assert worst_exit_code(Verdict(outcome, ()) for outcome in outcomes) == code
