"""Counts of workers at different times become bins that hold each packet once, and no loss that is none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hpn.failover.locating.counting import SETTLE_NS, Bin, Counting
from hpn.traffic.workers.messages import Progress

MS = 10**6
STEP = 100 * MS
SENDS, RECEIVES = 0, 1
"""Workers: flow 7 goes from one to the other, flow 9 back."""


def _heard(lost: Sequence[int], tellings: int, *, late: int = 0, drops: Sequence[int] = ()) -> list[Bin]:
    """Bins of flow 7, a packet a ms, without those in ``lost``; the receiver tells ``late`` tellings later."""
    counting = Counting([9, 7], 0, STEP)
    found: list[Bin] = []
    for telling in range(1, tellings + late + 1):
        sent_ms, got_ms = 100 * telling + 13, 100 * (telling - late) + 57  # the two tell at their own times
        if telling <= tellings:
            counting.hear(SENDS, Progress(sent_ms * MS, {7: sent_ms}, {9: 0}, {9: -1}, 0))
        if got_ms > 0:
            arrived = [seq for seq in range(got_ms - 1) if seq not in lost]
            told = Progress(got_ms * MS, {9: 0}, {7: len(arrived)}, {7: max(arrived, default=-1)}, 0)
            counting.hear(RECEIVES, told)
        found += counting.closed(drops[telling - 1] if drops else 0)
    return found


def test_each_lost_packet_counts_once_in_the_bin_of_its_time() -> None:
    found = _heard([150, 151, 430], 9)
    lost = [int(each.lost[0]) for each in found]
    assert lost[-1] == 3
    assert (lost[0], lost[1]) == (0, 0)  # the first is lost at 150 ms: no bin before it has it
    assert (lost[3], max(at for at, total in enumerate(lost) if total == 2)) == (2, 4)  # nor is it long after
    assert all(each.whole for each in found)


def test_packets_on_their_way_are_not_lost_whatever_the_phase_of_workers() -> None:
    assert [int(each.lost.sum()) for each in _heard([], 9)] == [0] * len(_heard([], 9))


def test_a_receiver_that_is_late_makes_answers_late_and_not_wrong() -> None:
    in_time, late = _heard([150], 9), _heard([150], 9, late=4)
    assert [list(each.lost) for each in late[:4]] == [list(each.lost) for each in in_time[:4]]
    assert all(int(each.lost[0]) <= 1 for each in late)


def test_a_path_without_any_arrival_loses_what_was_sent() -> None:
    found = _heard(range(10_000), 9)
    assert int(found[-1].lost[0]) == int(found[-1].sent[0]) > 500


def test_lost_is_never_more_than_sent_in_a_bin() -> None:
    found = _heard(range(100, 330), 9)
    for before, after in pairwise(found):
        assert (after.lost - before.lost <= after.sent - before.sent).all()
        assert (after.lost >= before.lost).all()


def test_a_bin_in_which_the_machine_lost_packets_is_not_whole() -> None:
    found = _heard([], 6, drops=[0, 0, 5, 5, 5, 5])
    assert [each.whole for each in found].count(False) == 1


def test_no_bin_is_closed_before_each_flow_has_told_both_ends() -> None:
    counting = Counting([7], 0, STEP)
    for at_ms in (100, 200, 300):
        counting.hear(SENDS, Progress(at_ms * MS, {7: at_ms}, {}, {}, 0))
    assert not list(counting.closed(0))
    counting.hear(RECEIVES, Progress(100 * MS + SETTLE_NS, {}, {7: 200}, {7: 199}, 0))
    assert len(list(counting.closed(0))) == 1
