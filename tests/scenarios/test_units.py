"""Durations and percentages: what is written is read back exactly, and everything else says what to write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.files.units import duration, format_duration, format_percent, parse_duration, parse_percent, percent


@given(st.integers(0, 10**15))
def test_a_duration_printed_reads_back_to_the_nanosecond(ns: int) -> None:
    assert parse_duration(format_duration(ns)) == ns


@given(
    st.integers(0, 10**9), st.sampled_from([("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9), ("min", 60 * 10**9)])
)
def test_a_duration_is_its_number_times_its_unit_with_any_spacing(number: int, unit: tuple[str, int]) -> None:
    name, factor = unit
    assert parse_duration(f"{number}{name}") == parse_duration(f" {number}  {name} ") == number * factor


@given(st.integers(0, 10_000).map(lambda n: n / 100))
def test_a_percentage_printed_reads_back(value: float) -> None:
    share = parse_percent(f"{value} %")
    assert parse_percent(format_percent(share)) == share == pytest.approx(value / 100)


@given(st.one_of(st.text(max_size=12), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.integers())))
def test_anything_else_is_a_value_error_and_never_another(value: object) -> None:
    for parse in (parse_duration, parse_percent):
        said = "; write"
        try:
            parse(value)
        except ValueError as error:
            said = str(error)
        assert "; write" in said
        assert "\n" not in said


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (50, "50 is not a duration; write the unit: '50 ms' or '50 s'"),
        ("50 seconds", "'50 seconds' is not a duration; write a number and a unit, such as '50 ms'"),
        (True, "true is not a duration; write a number and a unit, such as '50 ms'"),
        ("-5 ms", "'-5 ms' is not a duration; write a number and a unit, such as '50 ms'"),
        ("1e3 ms", "'1e3 ms' is not a duration; write a number and a unit, such as '50 ms'"),
    ],
)
def test_a_wrong_duration_says_what_to_write(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=r"; write") as caught:
        parse_duration(value)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (45, "45 is not a percentage; write '45 %'"),
        (0.45, "0.45 is not a percentage; write '45 %'"),
        ("half", "'half' is not a percentage; write a number and '%', such as '45 %'"),
    ],
)
def test_a_wrong_percentage_says_what_to_write(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=r"; write") as caught:
        parse_percent(value)
    assert str(caught.value) == message


def test_a_bounded_value_names_its_bounds_as_they_were_written() -> None:
    with pytest.raises(ValueError, match="5 ms is out of range; write 10 ms to 1 min"):
        duration("10 ms", "1 min").func("5 ms")  # type: ignore[call-arg]  # pydantic types it with an info argument
    with pytest.raises(ValueError, match="150 % is out of range; write 0 % to 100 %"):
        percent("0 %", "100 %").func("150 %")  # type: ignore[call-arg]  # the same
