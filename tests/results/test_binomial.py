"""Exact one-sided binomial bounds against closed forms, published tables and their own definition."""

from __future__ import annotations

import math

import pytest

from hpn.results.judge.repeats.binomial import rate_at_least, rate_at_most


@pytest.mark.parametrize("runs", [1, 2, 3, 5, 10, 59, 100, 1000])
def test_without_a_failure_the_bound_has_a_closed_form(runs: int) -> None:
    assert rate_at_most(0, runs) == pytest.approx(1 - 0.05 ** (1 / runs), rel=1e-9)
    assert rate_at_least(runs, runs) == pytest.approx(0.05 ** (1 / runs), rel=1e-9)


@pytest.mark.parametrize(
    ("failures", "runs", "upper"),
    [(0, 10, 0.2589), (1, 10, 0.3942), (2, 10, 0.5069), (5, 10, 0.7776), (1, 20, 0.2161)],
)
def test_known_values(failures: int, runs: int, upper: float) -> None:
    """95 % one-sided: beta quantiles, as R's qbeta(0.95, k + 1, n - k) gives them."""
    assert rate_at_most(failures, runs) == pytest.approx(upper, abs=5e-5)


@pytest.mark.parametrize(("failures", "runs"), [(1, 7), (3, 12), (39, 100)])
def test_at_the_bound_so_few_failures_are_seen_in_one_series_of_twenty(failures: int, runs: int) -> None:
    rate = rate_at_most(failures, runs)
    tail = sum(math.comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(failures + 1))
    assert tail == pytest.approx(0.05, rel=1e-6)


def test_a_series_that_only_failed_bounds_nothing_from_above() -> None:
    assert (rate_at_most(4, 4), rate_at_least(0, 4), rate_at_most(0, 0)) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(("failures", "runs"), [(-1, 3), (4, 3)])
def test_no_such_series(failures: int, runs: int) -> None:
    with pytest.raises(ValueError, match="failures in 3 runs"):
        rate_at_most(failures, runs)
