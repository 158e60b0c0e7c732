"""How many runs would tell a difference: held against tables, against scipy, and against all orders counted."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from hpn.results.comparison.power import MOST_RUNS, pairs_needed, runs_of_groups, shift_of_groups, shift_of_pairs

NORMAL = [NormalDist().inv_cdf((at + 0.5) / 200) for at in range(200)]
SKEWED = [-1.0, -0.3, 0.2, 0.4, 0.5, 6.5, 13.0, 25.0, 39.0, 92.0]
"""Differences of pairs whose median, 3.5, says little: most are large, and nearly all have one sign."""


@pytest.mark.parametrize(("difference", "pairs", "groups"), [(1.0, 9.94, 16.71), (0.5, 33.37, 63.77)])
def test_of_normal_values_it_is_what_r_tells_of_the_t_test_and_pitman_of_ranks(
    difference: float, pairs: float, groups: float
) -> None:
    """power.t.test(power = .80, delta = DIFFERENCE), paired too; rank tests take 3 / pi as many and more."""
    assert pairs_needed(NORMAL, difference) == pytest.approx(pairs * math.pi / 3, rel=0.1)
    assert runs_of_groups(NORMAL, NORMAL, difference) == pytest.approx(groups * math.pi / 3, rel=0.1)


def test_never_fewer_than_any_order_could_tell() -> None:
    assert pairs_needed([1.0, 1.0], figures=10) == 9, "2 of 512 orders are rarer than 0.5 %"
    assert runs_of_groups([5.0, 5.0], [6.0, 6.0]) == 4, "3 and 3 runs have no order rarer than 10 %"


def test_that_many_skewed_pairs_tell_their_difference_4_times_in_5() -> None:
    stats = pytest.importorskip("scipy.stats")
    random, needed = np.random.default_rng(9), pairs_needed(SKEWED)
    told = [
        stats.wilcoxon(random.choice(SKEWED, needed) + random.random(needed) * 1e-6).pvalue < 0.05 for _ in range(400)
    ]
    assert 0.74 < np.mean(told) < 0.9
    assert needed < 20, "the median against the variance would have asked for 578"


def test_a_difference_too_small_for_any_number_of_runs_is_no_number() -> None:
    assert pairs_needed([-1.0, 1.0, -2.0, 2.0], 1e-5) == MOST_RUNS + 4 + 1, "that equal ones part is nothing to go by"
    assert runs_of_groups([0.0, 1.0, 2.0], [0.0, 1.0, 2.0]) == MOST_RUNS + 3 + 1


def test_shifts_are_the_medians_of_all_differences() -> None:
    means = [(one + two) / 2 for one, two in itertools.combinations_with_replacement(SKEWED, 2)]
    assert shift_of_pairs(SKEWED) == pytest.approx(np.median(means))
    assert shift_of_groups([1.0, 2.0, 6.0], [3.0, 5.0, 9.0]) == 3.0
    assert shift_of_pairs(NORMAL * 500) == pytest.approx(0, abs=0.01), "of 100,000 pairs, in no more memory"


def test_the_same_runs_give_the_same_number_and_more_figures_take_more() -> None:
    assert pairs_needed(SKEWED) == pairs_needed(SKEWED)
    assert pairs_needed(NORMAL, 1.0, figures=10) > 1.5 * pairs_needed(NORMAL, 1.0)
