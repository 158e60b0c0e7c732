"""Hold-down with exponential back-off: how long what keeps going away is not trusted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.routing.pathcontrol.damping import FORGET_FACTOR, Damper

MS = 1_000_000
KEY = ("p0", "10.0.0.1")


def lose_and_return(damper: Damper, *at_ms: int) -> list[int]:
    """The holds in ms after losses, each over within a ms."""
    holds = []
    for at in at_ms:
        damper.lost(KEY, at * MS)
        holds.append(damper.back(KEY, (at + 1) * MS) // MS)
    return holds


def test_the_first_loss_is_free_and_each_further_one_doubles_the_hold_up_to_the_longest() -> None:
    assert lose_and_return(Damper(100, 450), *range(0, 60, 10)) == [0, 100, 200, 400, 450, 450]


def test_without_a_hold_there_is_no_damping_and_no_memory() -> None:
    damper = Damper(0, 450)
    assert lose_and_return(damper, 0, 10, 20) == [0, 0, 0]
    assert damper.size == 0


def test_saying_the_same_twice_changes_nothing() -> None:
    damper = Damper(100, 450)
    for _ in range(5):
        damper.lost(KEY, 0)
    assert damper.back(KEY, MS) == 0
    assert damper.back(KEY, 2 * MS) == 0


def test_a_hold_ends_in_time_and_by_another_loss() -> None:
    damper = Damper(100, 450)
    lose_and_return(damper, 0, 10)
    assert (damper.holds(KEY), damper.deadline_ns) == (True, 111 * MS)
    assert damper.release(111 * MS - 1) == []
    assert damper.release(111 * MS) == [KEY]
    assert not damper.holds(KEY)
    lose_and_return(damper, 120)
    damper.lost(KEY, 130 * MS)
    assert (damper.holds(KEY), damper.deadline_ns) == (False, None)


def test_what_stayed_for_twice_the_longest_hold_is_as_good_as_new() -> None:
    damper = Damper(100, 450)
    lose_and_return(damper, 0, 10)
    damper.expire((11 + FORGET_FACTOR * 450) * MS - 1)
    assert damper.size == 1
    assert lose_and_return(damper, 11 + FORGET_FACTOR * 450) == [0]
    damper.release(10**18)
    damper.expire(10**18)
    assert damper.size == 0


@given(st.integers(1, 1000), st.integers(1, 10_000), st.lists(st.integers(1, 500), max_size=200))
def test_no_hold_is_longer_than_the_longest(hold_ms: int, hold_max_ms: int, gaps: list[int]) -> None:
    damper, now = Damper(hold_ms, hold_max_ms), 0
    for gap in gaps:
        now += gap
        (held,) = lose_and_return(damper, now)
        assert held <= max(hold_ms, hold_max_ms)
        assert damper.size <= 1
