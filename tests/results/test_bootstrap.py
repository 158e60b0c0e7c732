"""The interval of a median: repeatable, sane at its edges, and as often right as it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hpn.results.judge.repeats.bootstrap import median_interval


def test_the_same_values_give_the_same_interval() -> None:
    values = [20.0, 22.5, 19.0, 31.0, 24.0, 21.0, 20.5, 23.0, 26.0, 22.0]
    assert median_interval(values) == median_interval(values)
    low, high = median_interval(values)
    assert 19.0 < low <= 22.25 <= high < 31.0


def test_the_order_of_the_runs_does_not_move_it_far() -> None:
    values = [float(n) for n in range(30)]
    (low, high), (low2, high2) = median_interval(values), median_interval(values[::-1])
    assert abs(low - low2) <= 1
    assert abs(high - high2) <= 1


def test_equal_values_leave_no_doubt_and_two_leave_all() -> None:
    assert median_interval([7.0] * 10) == (7.0, 7.0)
    assert median_interval([7.0]) == (7.0, 7.0)
    assert median_interval([10.0, 50.0]) == (10.0, 50.0)


def test_what_never_ended_is_a_value() -> None:
    low, high = median_interval([1.0, 2.0, 3.0, math.inf, math.inf])
    assert (low, high) == (1.0, math.inf)
    assert median_interval([math.inf] * 4) == (math.inf, math.inf)
    assert median_interval([-math.inf, 1.0, 1.0]) == (-math.inf, 1.0)


def test_many_repeats_need_no_more_draws_at_once() -> None:
    values = [float(n % 100) for n in range(1000)]
    low, high = median_interval(values, resamples=2000)
    assert 45 <= low <= 49.5 <= high <= 54


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        median_interval([])


def test_it_holds_the_true_median_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    true = math.exp(3)  # the median of this log-normal
    runs = [median_interval(random.lognormal(3, 0.5, 15).tolist(), resamples=500) for _ in range(300)]
    assert 0.88 < sum(low <= true <= high for low, high in runs) / len(runs) <= 1.0
