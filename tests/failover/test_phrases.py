"""Times in sentences: a bound is rounded to its side, a figure to the nearest as tables do."""

from __future__ import annotations

import pytest

from hpn.failover.analysis.phrases import about_ms, in_ms


@pytest.mark.parametrize(
    ("ms", "at_most", "about", "at_least"),
    [
        (135.2, "136 ms", "135 ms", "135 ms"),
        (138.7, "139 ms", "139 ms", "138 ms"),
        (0.652, "0.66 ms", "0.65 ms", "0.65 ms"),
        (4463.0, "4.47 s", "4.46 s", "4.46 s"),
        (20.0, "20.0 ms", "20.0 ms", "20.0 ms"),
    ],
)
def test_a_bound_is_rounded_to_its_side_and_a_figure_to_the_nearest(
    ms: float, at_most: str, about: str, at_least: str
) -> None:
    assert (in_ms(ms), about_ms(ms), about_ms(ms, at_least=True)) == (at_most, about, at_least)
