"""Figures in words: counts with separators, times without an exponent, in whatever shows a check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hpn.failover.analysis.phrases import number, plain
from hpn.results.judge.verdict import Check, Outcome
from hpn.results.text.checks import describe
from hpn.results.text.values import value_text

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (11740, "", "11,740"),
        (1646, "", "1,646"),
        (45, "", "45"),
        (-12000, "", "-12,000"),
        (1.5e7, "", "15,000,000"),
        (99.961, "%", "99.96 %"),
        (0, "", "0"),
        (float("inf"), "", "inf"),
    ],
)
def test_a_count_is_a_whole_number_with_separators(value: float, unit: str, text: str) -> None:
    assert value_text(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1943.4, "1943"), (3090, "3090"), (2.667, "2.67"), (0.5, "0.5"), (99.96, "100"), (2e-6, "0.000002")],
)
def test_a_time_has_no_exponent(value: float, text: str) -> None:
    assert plain(value) == text


@given(st.floats(-1e12, 1e12), st.integers(3, 5))
@example(100.25, 5)
def test_no_figure_has_an_exponent(value: float, digits: int) -> None:
    for text, has in ((number(value), 4), (plain(value, digits), digits)):
        assert "e" not in text
        assert float(text.replace(",", "")) == pytest.approx(value, rel=10.0 ** (1 - has), abs=1e-9)


def test_a_check_says_how_many_packets_were_lost_to_the_last_one() -> None:
    check = Check("packets lost at most 0", Outcome.FAIL, 11740.0, 0.0, -11740.0)
    assert describe(check) == "measured 11,740, limit 0, margin -11,740"


def test_nothing_that_is_said_of_a_run_has_a_time_that_may_get_an_exponent() -> None:
    """Milliseconds of thousands of them are as common as any."""
    rooms = ("failover/analysis", "scenarios/expect", "results/text")
    sources = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert len(sources) > 60
    found = [f"{path}: {hit}" for path in sources for hit in re.findall(r"\{[^{}]*:\.\dg\} m?s\b", path.read_text())]
    assert not found
