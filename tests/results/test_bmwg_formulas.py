"""Formulas of BMWG's draft, held against its own worked example and against what must be true of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.results.bmwg.formulas import (
    algo_factor,
    busbw,
    fairness,
    max_mean_ratio,
    roofline,
    variation,
)
from hpn.results.bmwg.procedures import PROCEDURES
from hpn.results.judge.repeats.spread import nearest_rank

LOADS = st.lists(st.floats(1, 1e9), min_size=1, max_size=64)


def test_the_terminology_draft_s_worked_example() -> None:
    factor = algo_factor("all-reduce", 8)
    assert factor == 1.75
    assert busbw(1e9, factor, 10e-3) == pytest.approx(8 * 175e9)


def test_a_collective_that_the_draft_does_not_name_has_no_factor() -> None:
    with pytest.raises(KeyError):
        algo_factor("broadcast", 8)


def test_a_job_at_line_rate_meets_the_roofline() -> None:
    size, factor, rate = 4e6, algo_factor("all-gather", 4), 4e8
    seconds = roofline(0, size, factor, rate)
    assert busbw(size, factor, seconds) == pytest.approx(rate)
    assert roofline(0.1, size, factor, rate) == pytest.approx(0.1 + seconds)


@given(LOADS)
def test_mmr_is_at_least_1_and_jfi_between_1_over_n_and_1(loads: list[float]) -> None:
    ratio, index = max_mean_ratio(loads), fairness(loads)
    assert ratio is not None
    assert index is not None
    assert 1 - 1e-9 <= ratio <= len(loads) + 1e-9
    assert 1 / len(loads) - 1e-9 <= index <= 1 + 1e-9


@given(st.floats(1, 1e9), st.integers(2, 64))
def test_one_busy_link_is_the_worst(load: float, links: int) -> None:
    loads = [load] + [0.0] * (links - 1)
    assert max_mean_ratio(loads) == pytest.approx(links)
    assert fairness(loads) == pytest.approx(1 / links)


def test_nothing_sent_has_no_ratio() -> None:
    assert max_mean_ratio([0, 0]) is None
    assert fairness([0, 0]) is None
    assert variation([1.0]) is None


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(1, 100))
def test_a_percentile_is_a_sample_with_that_share_at_or_below_it(values: list[float], percent: float) -> None:
    found = nearest_rank(values, percent)
    assert found in values
    assert 100 * sum(value <= found for value in values) >= percent * len(values) - 1e-6


def test_every_procedure_has_rows_or_says_why_not() -> None:
    for each in PROCEDURES.values():
        assert each.deviates.startswith("Not done:") == (not each.columns), each.section
        assert not each.primary or each.primary in each.columns, each.section
