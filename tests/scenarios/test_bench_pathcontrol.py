"""The bench of path control: what it counts is right; its times are nobody's promise."""

from __future__ import annotations

import pytest

from hpn.scenarios.selfcheck.bench.pathcontrol import figures, measure


@pytest.mark.parametrize(("one_by_one", "most"), [(False, 1), (True, 40)])
def test_each_host_gets_one_frame_of_many_withdrawals_and_never_more_than_one_for_each(
    one_by_one: bool, most: int
) -> None:
    found = measure(4, 40, 1, one_by_one=one_by_one)
    assert 4 <= found.notices <= 4 * most
    assert 60 <= found.moved <= 100  # of 160, those that their LAG carries by the plane that is lost
    assert found.tor_cpu_ms > 0
    assert found.host_cpu_ms < found.last_move_ms + 0.001
    assert found.refresh_octets == 4 * ((16 + 40 * 4 + 18) + (16 + 40 * 5 + 18))


def test_the_figures_are_about_a_tor_of_the_paper() -> None:
    found = {figure.name: figure for figure in figures(1)}
    assert found["plane lost: notices"].value == 128
    assert "128 hosts x 100 queue pairs" in found["plane lost: last queue pair moved"].note
