"""Series of flows: what they add up to is what the records have, and a hole is where the packets were sent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hpn.failover.analysis.metrics.series import message_series, stream_series
from hpn.failover.analysis.metrics.trace import build_traces
from hpn.failover.analysis.series import Bins, bins_of
from hpn.failover.analysis.settings import Settings
from hpn.traffic.jobengine.records import MESSAGE, RETRY
from tests.failover.synthetic import MS, Dead, S, flow, record


def test_a_hole_shows_in_the_bins_in_which_its_packets_were_sent() -> None:
    flows = [flow(0), flow(1)]
    records = record(flows[0], 2 * S, [Dead(S + 500 * MS, S + 530 * MS)]) + record(flows[1], 2 * S)
    bins = bins_of(S, 3 * S)
    found = stream_series(build_traces(flows, *records.tables, Settings()), bins)
    assert (bins.count, bins.end_ns) == (200, 3 * S)
    assert found.sent.sum() == len(records.sent)
    assert found.received.sum() == len(records.received)
    missing = found.sent.astype(int) - found.received
    assert np.flatnonzero(missing[0]).tolist() == [50, 51, 52]
    assert missing[0][50:53].tolist() == [10, 10, 10]
    assert not missing[1].any()
    assert found.flows[1].name == flows[1].name


@pytest.mark.parametrize("by_arrival", [False, True])
def test_what_waits_with_its_sender_arrives_in_the_bins_of_its_arrival_and_is_missing_in_none(by_arrival: bool) -> None:
    one, held = flow(0), Dead(S + 100 * MS, S + 120 * MS)
    records = record(one, S, stuck=held, stuck_for_ns=50 * MS, delay_ns=40_000)
    bins = bins_of(S, 2 * S + 100 * MS)
    found = stream_series(build_traces([one], *records.tables, Settings(), by_arrival=by_arrival), bins)
    assert np.array_equal(found.sent, found.received)
    arrived = found.goodput_packets[0].astype(int)
    assert arrived.sum() == len(records.received)
    assert arrived[10:12].tolist() == ([0, 0] if by_arrival else [10, 10])
    assert arrived[15:17].tolist() == ([20, 20] if by_arrival else [10, 10])


def test_the_largest_delay_of_a_bin_is_told_in_steps() -> None:
    one = flow(0)
    records = record(one, S, stuck=Dead(S + 100 * MS, S + 120 * MS), stuck_for_ns=7 * MS, delay_ns=40_000)
    found = stream_series(build_traces([one], *records.tables, Settings()), bins_of(S, 2 * S))
    assert set(found.delay_us[0]) == {100, 7100}
    assert np.flatnonzero(found.delay_us[0] == 7100).tolist() == [10, 11]


def test_bursts_count_with_all_their_packets_and_nothing_beyond_the_bins() -> None:
    one = flow(0)
    records = record(one, S, burst=5)
    found = stream_series(build_traces([one], *records.tables, Settings()), Bins(S + 100 * MS, 10 * MS, 20))
    assert found.sent.tolist() == [[10] * 20]


def test_no_flow_and_no_time_make_no_bins() -> None:
    assert bins_of(S, S).count == bins_of(S, S - 5).count == 0
    assert bins_of(S, S + 1).count == 1


@pytest.mark.parametrize(
    ("posted", "completed", "first"), [(S, S + 20 * MS, 500), (S + MS, S + MS, 1000), (S, S + 5 * MS, 1000)]
)
def test_a_message_is_spread_over_its_time(posted: int, completed: int, first: int) -> None:
    messages = np.zeros(1, MESSAGE)
    messages[0] = (0, 0, 1000, posted, completed)
    found = message_series(messages, [flow(0)], bins_of(S, S + 40 * MS))
    assert found.size_bytes[0].tolist() == [first, 1000 - first, 0, 0]


def test_messages_that_were_posted_together_went_one_after_the_other() -> None:
    messages = np.zeros(3, MESSAGE)
    messages[0] = (0, 1, 300, S, S + 20 * MS)
    messages[1] = (0, 0, 100, S, S + 10 * MS)
    messages[2] = (0, 2, 500, S + 30 * MS, S + 40 * MS)
    found = message_series(messages, [flow(0)], bins_of(S, S + 40 * MS))
    assert found.size_bytes[0].tolist() == [100, 300, 0, 500]
    assert found.busy_us is not None
    assert found.busy_us[0].tolist() == [10_000, 10_000, 0, 10_000], "the second waited for the first, in its turn"


def test_a_queue_pair_is_busy_only_while_a_message_is_under_way() -> None:
    messages = np.zeros(2, MESSAGE)
    messages[0] = (0, 0, 1000, S + 4 * MS, S + 12 * MS)
    messages[1] = (0, 1, 1000, S + 17 * MS, S + 19 * MS)
    found = message_series(messages, [flow(0)], bins_of(S, S + 30 * MS))
    assert found.busy_us is not None
    assert found.busy_us[0].tolist() == [6_000, 4_000, 0]


def test_retries_are_counted_by_queue_pair_in_the_bin_in_which_they_were_told() -> None:
    """The first expiry of a timer may be of a lost acknowledgement, which took another path."""
    told = [(1, 0, S), (0, 1, S + 5 * MS), (0, 2, S + 25 * MS), (1, 0, S + MS), (0, 0, S - 1), (0, 0, S + 30 * MS)]
    retries = np.array(told, RETRY)
    found = message_series(np.zeros(0, MESSAGE), [flow(0), flow(1)], bins_of(S, S + 30 * MS), retries)
    assert found.retries is not None
    assert found.retries.tolist() == [[0, 0, 1], [2, 0, 0]]


@example([(0, 1, 411527690, 10 * MS), (0, 198732393, 0, 138), (0, 2**29, 0, 138), (0, 2**29, 0, 138)])
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(1, 2**30), st.integers(0, 990 * MS), st.integers(1, 10 * MS)),
        max_size=20,
    )
)
def test_no_byte_is_lost_and_none_is_made(sent: list[tuple[int, int, int, int]]) -> None:
    messages = np.zeros(len(sent), MESSAGE)
    for at, (number, size, posted, took) in enumerate(sent):
        messages[at] = (number, 0, size, S + posted, S + posted + took)
    found = message_series(messages, [flow(0), flow(1)], bins_of(S, 2 * S + 10 * MS))
    for number in (0, 1):
        assert int(found.size_bytes[number].sum()) == sum(size for of, size, *_ in sent if of == number)
