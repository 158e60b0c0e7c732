"""Differences of groups of runs, held against R's published examples and against scipy where it is installed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from hpn.results.comparison.differences import differences
from hpn.results.comparison.exact import cliffs_delta, holm, mann_whitney, signed
from hpn.results.comparison.figures import Key, Value, values_of
from hpn.results.comparison.groups import Compared, grouped, why_not
from hpn.results.comparison.intervals import Span, bca, difference_of, interval_of_groups, mean, median, paired
from hpn.results.comparison.science import DifferenceEvidence, evidence, science
from hpn.results.judge.verdict import Check, Outcome, decide
from hpn.results.text.answer import answer
from hpn.results.text.evidence import evidence_sheet
from tests.results.sample import MANIFEST, metrics, other_run, verdict

PERMEABLE = (0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46)
AT_TERM = (1.15, 0.88, 0.90, 0.74, 1.21)
"""Hollander and Wolfe (1973), 69f, as R's help of wilcox.test has them."""
DEPRESSED = (1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
TREATED = (0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)
"""Hollander and Wolfe (1973), 29f, of the same page."""


def exactly(values: Sequence[float]) -> list[Span]:
    return [Span(value, value) for value in values]


def at_least(value: float) -> Span:
    return Span(value, math.inf)


def test_the_example_of_two_groups_is_as_r_has_it() -> None:
    """wilcox.test(x, y, alternative = "g"): W = 35, p-value = 0.1272; two-sided twice that."""
    found = mann_whitney(exactly(PERMEABLE), exactly(AT_TERM))
    assert found.p == pytest.approx(0.2544, abs=5e-5)
    assert found.exact
    above = 35  # W
    assert cliffs_delta(exactly(PERMEABLE), exactly(AT_TERM)).low == pytest.approx(1 - 2 * above / 50)


def test_the_example_of_pairs_is_as_r_has_it() -> None:
    """wilcox.test(x, y, paired = TRUE, alternative = "greater"): V = 40, p-value = 0.01953."""
    found = signed(paired(exactly(DEPRESSED), exactly(TREATED)))
    assert found.p == pytest.approx(2 * 0.01953, abs=1e-5)


def test_holm_is_as_r_has_it() -> None:
    """p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") is 0.05 0.08 0.09 0.09 0.09."""
    assert holm([0.04, 0.01, 0.05, 0.02, 0.03]) == pytest.approx([0.09, 0.05, 0.09, 0.08, 0.09])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_tests_are_as_scipy_has_them() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(3)
    for sizes in ((3, 4), (5, 5), (8, 12), (25, 30)):
        one, two = (random.normal(at, 1, size).tolist() for at, size in zip((0, 0.7), sizes, strict=True))
        judged = stats.mannwhitneyu(one, two, method="exact")
        assert mann_whitney(exactly(one), exactly(two)).p == pytest.approx(judged.pvalue)
    for size in (5, 9, 40):
        found = random.normal(0.4, 1, size).tolist()
        assert signed(exactly(found)).p == pytest.approx(stats.wilcoxon(found, method="exact").pvalue)
    tied = [round(each, 0) for each in random.normal(0.5, 2, 12).tolist()]
    judged = stats.permutation_test(
        ([each for each in tied if each],), lambda x: (np.sign(x) * stats.rankdata(np.abs(x))).sum(),
        permutation_type="samples", n_resamples=np.inf,
    )  # fmt: skip
    assert signed(exactly(tied)).p == pytest.approx(judged.pvalue)
    one, two = [1.0, 2.0, 2.0, 3.0, 5.0], [2.0, 3.0, 4.0, 4.0, 9.0]
    judged = stats.permutation_test(
        (one, two), lambda x, y: stats.mannwhitneyu(x, y).statistic - 12.5, permutation_type="independent",
        n_resamples=np.inf, vectorized=False,
    )  # fmt: skip
    assert mann_whitney(exactly(one), exactly(two)).p == pytest.approx(judged.pvalue)


def test_many_runs_are_judged_by_the_normal_distribution_and_that_is_told() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(4)
    one, two = random.normal(0, 1, 60).tolist(), random.normal(0.3, 1, 50).tolist()
    found = mann_whitney(exactly(one), exactly(two))
    judged = stats.mannwhitneyu(one, two, method="asymptotic", use_continuity=False)
    assert not found.exact
    assert found.p == pytest.approx(judged.pvalue)


@pytest.mark.parametrize(("ours", "theirs"), [(mean, np.mean), (median, np.median)])
def test_intervals_are_as_scipy_has_them(ours: Callable[..., object], theirs: Callable[..., object]) -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(5)
    one, two = random.lognormal(3, 0.5, 25), random.lognormal(3.2, 0.7, 21)
    over = mean if ours is mean else median
    for samples in ((one,), (one, two)):
        found = bca(samples, over)
        judged = stats.bootstrap(
            samples,
            theirs if len(samples) == 1 else lambda x, y, axis: theirs(y, axis=axis) - theirs(x, axis=axis),  # type: ignore[operator]  # numpy's take an axis
            n_resamples=40_000, method="BCa", rng=6,
        ).confidence_interval  # fmt: skip
        width = judged.high - judged.low
        assert found.low == pytest.approx(judged.low, abs=0.05 * width)
        assert found.high == pytest.approx(judged.high, abs=0.05 * width)


def test_the_interval_holds_the_true_difference_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        found = bca((random.lognormal(3, 0.5, 20), random.lognormal(3, 0.5, 20)), mean, 1000)
        held += found.low <= 0 <= found.high
    assert 0.88 < held / 200 <= 0.99


def test_the_same_runs_give_the_same_interval() -> None:
    one, two = exactly(PERMEABLE), exactly(AT_TERM)
    assert interval_of_groups(one, two, median) == interval_of_groups(one, two, median)


def test_a_bound_stays_one_in_a_difference() -> None:
    one = exactly([20.0, 21.0, 22.0, 23.0, 24.0])
    never = [*exactly([25.0, 26.0]), at_least(400.0), at_least(410.0), at_least(420.0)]
    assert difference_of(one, never, median) == at_least(378.0)
    assert difference_of(never, one, median) == Span(-math.inf, -378.0)
    assert difference_of(never, never, median) == Span(-math.inf, math.inf)
    assert difference_of(one, [*exactly([30.0, 31.0, 32.0, 33.0]), at_least(400.0)], median) == Span(10.0, 10.0)
    assert difference_of(one, [*exactly([30.0, 31.0, 32.0, 33.0]), at_least(3.0)], median) == Span(9.0, 10.0)
    assert difference_of(one, [*exactly([30.0, 31.0, 32.0, 33.0]), at_least(400.0)], mean).high == math.inf
    interval = interval_of_groups(one, never, median)
    assert interval.high == math.inf
    assert interval.low > 0


def test_bounds_are_ranked_as_far_as_their_order_is_known() -> None:
    one = exactly([20.0, 21.0, 22.0, 23.0, 24.0])
    beyond = [at_least(30.0), at_least(25.0), *exactly([28.0, 27.0, 26.0])]
    assert cliffs_delta(one, beyond) == Span(1.0, 1.0)
    assert mann_whitney(one, beyond).p == pytest.approx(2 / math.comb(10, 5))
    among = [at_least(21.5), *exactly([28.0, 27.0, 26.0, 25.0])]
    assert cliffs_delta(one, among) == Span(0.76, 1.0)
    assert mann_whitney(one, among).p is None
    pairs = paired(one, beyond)
    assert (signed(pairs).name, signed(pairs).p) == ("sign", 2 / 32)
    assert signed(paired(beyond, beyond)).p is None


def runs(version: str, worst_ms: Sequence[float], phases: Sequence[int] = (), never: int = 0) -> list[Compared]:
    """Runs of one version, at whose first edge ``never`` of them never came back."""
    made = []
    for at, ms in enumerate(worst_ms):
        found = other_run(metrics(), ms)
        if at < never:
            found = replace(found, edges=(replace(found.edges[0], flows_unrecovered=1), *found.edges[1:]))
        manifest = replace(MANIFEST, versions={"hpn": version}, phase=phases[at] if phases else 1)
        made.append(Compared(f"runs/{version}-{at}", manifest, found, verdict(metrics())))
    return made


def worst(of: Sequence[Compared], to_tell: float | None = None) -> DifferenceEvidence:
    found = science(grouped(of, ()), to_tell)
    return next(each for each in found if each.key.name == "worst outage" and "failure" in each.key.where)


FIRST, OTHER = (20.0, 24.0, 22.0, 28.0, 26.0, 30.0), (23.0, 27.5, 24.5, 31.0, 28.5, 33.5)


def test_runs_of_one_phase_are_pairs_in_whatever_order() -> None:
    order = (2, 1, 3, 6, 5, 4)
    other = [OTHER[at - 1] for at in order]
    found = worst([*runs("1", FIRST, range(1, 7)), *runs("2", other, order)])
    assert (found.pairs, found.test, found.median) == (6, "Wilcoxon signed-rank", Span(3.0, 3.0))
    assert found.p == 2 / 64
    assert found.median_interval is not None
    assert 2.5 <= found.median_interval.low <= 3.0 <= found.median_interval.high <= 3.5


@pytest.mark.parametrize("phases", [(), (1, 2, 3, 4, 5, 5), (1, 2, 3, 4, 5, 7)])
def test_runs_without_a_partner_each_are_two_groups(phases: Sequence[int]) -> None:
    found = worst([*runs("1", FIRST, range(1, 7)), *runs("2", OTHER, phases)])
    assert (found.pairs, found.test) == (0, "Mann-Whitney")
    assert found.median == Span(3.0, 3.0)
    assert found.p is not None
    assert found.holm is not None
    assert found.holm >= found.p > 0.05, "pairs would have told what groups do not"


def test_how_many_more_runs_would_tell_goes_by_the_difference_that_is_asked_for() -> None:
    both = [*runs("1", FIRST), *runs("2", OTHER)]
    seen, asked = worst(both), worst(both, 1.5)
    assert (seen.to_tell, asked.to_tell) == (3.0, 1.5)
    assert seen.more_runs is not None
    assert asked.more_runs is not None
    assert asked.more_runs > 3 * seen.more_runs > 0


def test_figures_that_are_the_same_in_all_runs_are_no_part_of_the_correction() -> None:
    both = [*runs("1", FIRST, range(1, 7)), *runs("2", OTHER, range(1, 7))]
    found = science(grouped(both, ()))
    assert len(found) > 5
    assert {(each.p, each.holm) for each in found} == {(2 / 64, 2 / 64), (1.0, 1.0), (None, None)}


def test_figures_that_no_run_resolves_are_no_part_of_the_correction() -> None:
    """Detection in 3 of 5 us of every run made p 0.0098 of a figure that differs 0.059, among figures that cannot."""
    both = [*runs("1", FIRST, range(1, 7)), *runs("2", OTHER, range(1, 7))]
    asked = [replace(run, verdict=decide([_unresolved(at, name) for name in "abc"])) for at, run in enumerate(both)]
    found = science(grouped(asked, ()))
    below = [each for each in found if each.key.name in "abc"]
    assert [(each.is_tested, each.more_runs) for each in below] == [(False, None)], "one measurement by three names"
    assert below[0].p == 2 / 64, "its test alone would tell it"
    tested = next(each for each in found if each.key.name == "worst outage" and "failure" in each.key.where)
    assert (tested.is_tested, tested.holm) == (True, 2 / 64)
    assert "in 1 of 1 tested figure" in answer(grouped(asked, ()), differences(grouped(asked, ())), found)
    row = next(row for row in evidence_sheet(found).rows if row[0].startswith("a,"))
    assert row[-3:-1] == ("not tested", "Wilcoxon signed-rank; below what a run resolves")


def _unresolved(at: int, name: str) -> Check:
    """A figure whose intervals all hold 4 us."""
    return Check(
        f"{name} below 1 ms", Outcome.PASS, 0.003 + at / 1e6, 1.0, unit="ms", low=0.0, high=0.005, bound="below"
    )


def test_one_measurement_under_two_names_is_tested_and_corrected_once() -> None:
    """An edge's figure and an expectation's that are the same in all runs; figures that never vary stay apart."""
    both = [*runs("1", FIRST, range(1, 7)), *runs("2", OTHER, range(1, 7))]
    asked = [replace(run, verdict=decide([_asked(run)])) for run in both]
    once, twice = science(grouped(both, ())), science(grouped(asked, ()))
    found = next(each for each in twice if "worst outage < 50 ms" in [key.name for key in each.keys])
    assert [key.where for key in found.keys] == ["link failure 0", ""]
    assert (found.p, found.holm) == (2 / 64, 2 / 64), "of two figures Holm would make 4 / 64"
    assert len(twice) <= len(once)


def _asked(run: Compared) -> Check:
    """An expectation of the same figure."""
    ms = run.metrics.edges[0].worst_outage_plbm_ms
    found = next(value for key, value in values_of(run).items() if value.measured == ms and key.name == "worst outage")
    return Check("worst outage < 50 ms", Outcome.PASS, ms, None, unit="ms", low=found.low, high=found.high)


def test_a_difference_that_no_run_resolves_is_none_whatever_its_test_says() -> None:
    """73.4 against 72.7 us, each from 0 to 78 us, in all of ten runs: p was 0.018, and 'better' was said."""
    key = Key("cut failure 0", "converge", "ms")

    def of(ms: float, low: float) -> list[tuple[Compared, Value]]:
        made = runs("1", [20.0] * 10, range(1, 11))
        return [(run, Value(ms + at / 1e6, low, 0.078)) for at, run in enumerate(made)]

    unresolved = replace(evidence(key, "other", of(0.0734, 0.0), of(0.0727, 0.0)), holm=0.018)
    assert (unresolved.p or 1) < 0.05
    assert not unresolved.significant
    assert evidence_sheet([unresolved]).rows[0][-2].endswith("; below what a run resolves")
    faster = [(run, Value(value.measured / 7, 0.0, 0.02)) for run, value in of(0.0734, 0.0)]
    assert replace(evidence(key, "other", of(0.0734, 0.073), faster), holm=0.018).significant


def test_an_outage_that_was_not_seen_is_no_number() -> None:
    """Runs that lost nothing may have been without traffic for less than can be seen: 0 is 'less than that'."""
    both = science(grouped([*runs("1", FIRST), *runs("2", OTHER)], ()))
    unseen = next(each for each in both if each.key.name == "worst outage" and "repair" in each.key.where)
    assert unseen.median.low == -unseen.median.high < 0
    assert (unseen.p, unseen.more_runs, unseen.delta) == (None, None, Span(-1.0, 1.0))
    gone = worst([*runs("1", [0.0] * 6), *runs("2", [549.0] * 6)])
    assert (gone.delta, gone.p) == (Span(1.0, 1.0), 2 / math.comb(12, 6))
    assert gone.median.low < gone.median.high == 549.0


def test_runs_that_never_came_back_leave_a_bound_and_no_number() -> None:
    found = worst([*runs("1", FIRST), *runs("2", [500.0] * 6, never=5)])
    assert found.median.high == math.inf
    assert found.median.low == pytest.approx(475.0)
    assert found.mean.high == math.inf
    assert (found.delta, found.more_runs) == (Span(1.0, 1.0), None)
    unsure = worst([*runs("1", FIRST), *runs("2", OTHER, never=5)])
    assert (unsure.p, unsure.holm) == (None, None)


def test_of_few_runs_it_is_said_what_is_not_known() -> None:
    lone = grouped([*runs("1", FIRST[:1]), *runs("2", OTHER)], ())
    assert science(lone) == ()
    assert why_not(lone) == "it takes 2 trusted runs of each group (--repeat), and 1 has 1"
    few = worst([*runs("1", FIRST[:3]), *runs("2", OTHER[:3])])
    assert few.median_interval is None
    assert few.median.known
