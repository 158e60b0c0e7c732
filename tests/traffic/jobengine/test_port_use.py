"""The queue pairs of a connection that carry its messages, while some have failed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.jobengine.port_use import PORT_USES, Lanes

FAILED_AND_BACK = [[True] * 4, [False, True, True, True], [True] * 4, [True, False, True, True]]
"""Two lanes at two ports; the first port's queue pair of the first lane fails and returns, then its standby fails."""


@pytest.mark.parametrize(
    ("use", "carrying"),
    [
        ("active-active", [[0, 1, 2, 3], [1, 2, 3], [0, 1, 2, 3], [0, 2, 3]]),
        ("active-standby", [[0, 2], [1, 2], [0, 2], [0, 2]]),
        ("active-standby-stay", [[0, 2], [1, 2], [1, 2], [0, 2]]),
    ],
)
def test_a_standby_takes_over_its_own_lane_and_gives_it_back_or_not(use: str, carrying: list[list[int]]) -> None:
    lanes = Lanes(2, PORT_USES[use])
    assert [lanes.carrying(ready) for ready in FAILED_AND_BACK] == carrying


@pytest.mark.parametrize("use", PORT_USES)
@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1))
def test_only_usable_queue_pairs_carry_and_one_does_as_long_as_there_is_one(
    use: str, history: list[list[bool]]
) -> None:
    lanes = Lanes(3, PORT_USES[use])
    for ready in history:
        carrying = lanes.carrying(ready)
        assert all(ready[index] for index in carrying)
        assert bool(carrying) == any(ready)
        if PORT_USES[use].standby:
            assert len({index // 3 for index in carrying}) == len(carrying), "one of each lane"
