"""CNPs: one per interval, some time after the mark."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.congestion.notifier import Notifier


def test_a_mark_becomes_a_cnp_after_the_delay_and_the_next_one_counts_after_the_interval() -> None:
    notifier = Notifier(50_000, 55_000)
    notifier.on_marked(1_000)
    notifier.on_marked(50_999)
    assert notifier.next_ns() == 56_000
    notifier.on_marked(51_000)
    assert not notifier.on_timer(55_999)
    assert notifier.on_timer(56_000)
    assert notifier.next_ns() == 106_000
    assert notifier.on_timer(106_000)
    assert notifier.next_ns() is None


@given(st.integers(1, 100), st.integers(0, 300), st.lists(st.integers(0, 60), max_size=60))
def test_cnps_are_an_interval_apart_and_never_before_their_mark(interval: int, delay: int, gaps: list[int]) -> None:
    notifier, now = Notifier(interval, delay), 0
    marks: list[int] = []
    sent: list[int] = []
    for gap in gaps:
        now += gap
        while (due := notifier.next_ns()) is not None and due <= now:
            assert notifier.on_timer(due)
            sent.append(due)
        notifier.on_marked(now)
        marks.append(now)
    while (due := notifier.next_ns()) is not None:
        assert notifier.on_timer(due)
        sent.append(due)
    assert all(later - earlier >= interval for earlier, later in pairwise(sent))
    assert all(at - delay in marks for at in sent)
    # No mark stays unanswered for longer than an interval.
    assert all(any(mark - interval < at - delay <= mark for at in sent) for mark in marks)


def test_a_caller_that_is_late_sends_one() -> None:
    notifier = Notifier(10, 0)
    for now in (0, 10, 20):
        notifier.on_marked(now)
    assert notifier.on_timer(25)
    assert notifier.next_ns() is None
