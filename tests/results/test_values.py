"""Figures and ranges as people read them: one unit for both ends, as many decimals, never an exponent."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.results.text.values import rate, span_text, value_text

_FINITE = st.floats(-1e21, 1e21) | st.floats(-10, 10) | st.integers(-(10**6), 10**6).map(float)
_UNITS = st.sampled_from(["ms", "%", "bit/s", "bps", "", "x", "iterations/s"])
_NUMBER = r"[+-]?[\d,]+(\.\d+)?"
_SPAN = re.compile(rf"(?P<low>{_NUMBER})( to (?P<high>{_NUMBER}))?(?P<unit> \S+)?")


@given(_FINITE, _FINITE, _UNITS, st.booleans())
def test_both_ends_share_one_unit_and_decimals_and_no_exponent(one: float, two: float, unit: str, signed: bool) -> None:
    low, high = sorted((one, two))
    text = span_text(low, high, unit, signed=signed)
    found = _SPAN.fullmatch(text)
    assert found, text
    ends = [found["low"], found["high"] or found["low"]]
    assert len({len(end.partition(".")[2]) for end in ends}) == 1, text
    assert (found["unit"] or "").strip().endswith(unit if unit not in ("bps", "bit/s") else "bit/s")
    assert not any(end.strip("0.,") == "-" for end in ends), "zero has no sign"
    assert float(ends[0].replace(",", "")) <= float(ends[1].replace(",", ""))


@given(_FINITE, _UNITS)
def test_no_figure_has_an_exponent(value: float, unit: str) -> None:
    assert not re.search(r"\de[+-]?\d", value_text(value, unit) + rate(value))


@pytest.mark.parametrize(
    ("low", "high", "unit", "text"),
    [
        (1.052e7, 24.68e6, "bit/s", "10.5 to 24.7 Mbit/s"),
        (900e6, 1.2e9, "bps", "0.90 to 1.20 Gbit/s"),
        (0.0, 1.37, "ms", "0.00 to 1.37 ms"),
        (2364.2, 2506.4, "ms", "2364 to 2506 ms"),
        (99.88, 100.1, "%", "99.88 to 100.10 %"),
        (0.0, 0.0, "", "0"),
        (10_520.0, 24_680.0, "", "10,520 to 24,680"),
    ],
)
def test_ranges_read_as_agreed(low: float, high: float, unit: str, text: str) -> None:
    assert span_text(low, high, unit) == text


@pytest.mark.parametrize(
    ("low", "high", "unit", "text"),
    [
        (-0.0004, 0.0002, "ms", "0.00 ms"),
        (-0.61, 54.9, "ms", "-0.6 to +54.9 ms"),
        (0.0000127, 0.0000127, "%", "0.00 %"),
        (10.8, 10.8, "ms", "+10.8 ms"),
        (-1.0, 1.0, "", "-1 to +1"),
    ],
)
def test_differences_have_signs_but_zero_has_none(low: float, high: float, unit: str, text: str) -> None:
    assert span_text(low, high, unit, signed=True) == text


def test_a_rate_has_a_blank_before_its_unit() -> None:
    assert value_text(24.68e6, "bit/s") == "24.68 Mbit/s"
    assert value_text(500.0, "bps") == "500 bit/s"
    assert rate(1e16) == "10000T"
