"""The interval of a mean over draws, and when it says the same as a paper's figure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.scenarios.paper.interval import Band, Estimate, estimate, says_the_same, student

SHARES = st.floats(-0.99, 10.0)
DRAWN = st.lists(SHARES, min_size=2, max_size=40)


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (11, 2.201), (29, 2.045), (30, 2.042)]
)
def test_the_quantiles_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert student(freedom) == pytest.approx(quantile, abs=5e-4)
    assert student(freedom, 0.5) < student(freedom, 0.9) < student(freedom)


def test_an_interval_by_hand() -> None:
    found = estimate([0.5, 0.6, 0.7])
    assert found.draws == 3
    assert found.mean == pytest.approx(0.6)
    assert [found.low, found.high] == pytest.approx([0.6 - 0.2484, 0.6 + 0.2484], abs=1e-4)
    assert found.text() == "+60.0% (95 %: +35.2 to +84.8%)"


@given(DRAWN)
def test_an_interval_holds_its_mean(values: list[float]) -> None:
    found = estimate(values)
    assert found.low <= found.mean <= found.high


@given(DRAWN, SHARES)
def test_a_figure_far_beyond_the_interval_differs(values: list[float], further: float) -> None:
    found = estimate(values)
    assert says_the_same(found, found.high + abs(further) + 1e-6) is False


@given(DRAWN, SHARES, SHARES, SHARES, st.floats(0, 5), st.floats(0, 5))
def test_agreement_is_monotone_in_the_band(
    values: list[float], paper: float, low: float, high: float, below: float, above: float
) -> None:
    """A wider band never turns what agrees into what differs."""
    if not low < high:
        low, high = high, low + 1e-3
    if not low < high:
        return
    found = estimate(values)
    if says_the_same(found, paper, Band(low, high, "a reason")):
        assert says_the_same(found, paper, Band(low - below, high + above, "a reason"))


@given(DRAWN, SHARES)
def test_without_a_band_only_the_interval_counts(values: list[float], paper: float) -> None:
    found = estimate(values)
    assert (says_the_same(found, paper) is False) == (not found.low <= paper <= found.high)


def test_an_interval_that_holds_no_effect_too_tells_nothing() -> None:
    assert says_the_same(Estimate(0.3, -0.1, 0.7, 12), 0.5) is None
    assert says_the_same(Estimate(0.3, -0.1, 0.7, 12), 0.8) is False


@pytest.mark.parametrize("values", [[], [0.5]])
def test_fewer_than_two_draws_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=f"{len(values)} draws have no interval; it takes 2"):
        estimate(values)


@pytest.mark.parametrize(("low", "high", "reason"), [(1.0, 1.0, "a reason"), (2.0, 1.0, "a reason"), (0.0, 1.0, "")])
def test_a_band_needs_a_range_and_a_reason(low: float, high: float, reason: str) -> None:
    with pytest.raises(ValueError, match="band from"):
        Band(low, high, reason)
