"""Steps that clients tell: what is taken, what is refused and why, and the records made of them."""

from __future__ import annotations

import numpy as np
import pytest

from hpn.traffic.client.ledger import Ledger
from hpn.traffic.client.lines import ClientStep
from hpn.traffic.jobengine.records import SPAN

BEGIN, UNTIL = 1_000, 9_000


def _ledger(*ranks: int) -> Ledger:
    found = Ledger(ranks)
    found.run(BEGIN, UNTIL)
    return found


def _rows(ledger: Ledger) -> list[tuple[int, ...]]:
    return [tuple(row) for row in np.frombuffer(ledger.packed(), SPAN).tolist()]


def test_a_step_without_times_lasts_from_the_step_before_to_its_line() -> None:
    ledger = _ledger(0)
    assert ledger.take((0,), ClientStep(0), 2_000) == ""
    assert ledger.take((0,), ClientStep(1), 3_500) == ""
    assert _rows(ledger) == [(0, 0, 0, 0, BEGIN, 2_000), (0, 1, 0, 0, 2_000, 3_500)]
    assert not ledger.told_times


def test_a_step_with_a_collective_is_an_iteration_and_a_span_of_it() -> None:
    ledger = _ledger(0)
    ledger.take((0,), ClientStep(0, begin_ns=1_100, end_ns=1_900, kind="all-reduce", size_bytes=64), 2_000)
    ledger.take((0,), ClientStep(1, begin_ns=2_100, end_ns=2_900, kind="all-gather", size_bytes=64), 3_000)
    assert ledger.doings(0) == (("all-gather", 64), ("all-reduce", 64))
    assert [row[:3] for row in _rows(ledger)] == [(0, 0, 0), (0, 0, 2), (0, 1, 0), (0, 1, 1)]
    assert ledger.told_times


def test_a_sum_that_most_ranks_do_not_have_is_wrong_once() -> None:
    ledger = _ledger(0, 1, 2)
    for rank, told in ((0, "aa"), (1, "bb"), (2, "aa")):
        ledger.take((rank,), ClientStep(0, kind="all-reduce", size_bytes=8, checksum=told), 2_000)
    assert [(row[0], row[3]) for row in _rows(ledger) if row[3]] == [(1, 1)]


def test_of_two_sums_that_as_many_have_the_lowest_rank_s_counts() -> None:
    ledger = _ledger(0, 1)
    ledger.take((1,), ClientStep(0, checksum="bb"), 2_000)
    ledger.take((0,), ClientStep(0, checksum="aa", wrong=3), 2_000)
    assert [(row[0], row[3]) for row in _rows(ledger)] == [(0, 3), (1, 1)]


def test_a_process_of_several_ranks_tells_steps_of_all_or_of_one() -> None:
    ledger = _ledger(0, 1)
    assert ledger.take((0, 1), ClientStep(0), 2_000) == ""
    assert ledger.take((0, 1), ClientStep(1, rank=1), 3_000) == ""
    assert (ledger.count(0), ledger.count(1)) == (1, 2)
    assert ledger.take((0, 1), ClientStep(1, rank=2), 3_000) == "rank 2 is not in this process"


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (ClientStep(0), "rank 0 has told step 0 before"),
        (ClientStep(5, begin_ns=999, end_ns=1_500), "it began before the run"),
        (ClientStep(5, begin_ns=1_000, end_ns=4_001), "it ended after it was told"),
    ],
)
def test_a_step_that_cannot_be_is_refused(step: ClientStep, why: str) -> None:
    ledger = _ledger(0)
    ledger.take((0,), ClientStep(0), 2_000)
    assert ledger.take((0,), step, 4_000) == why
    assert ledger.count(0) == 1


def test_nothing_is_taken_before_the_run_nor_of_a_rank_that_does_not_report() -> None:
    assert Ledger((0,)).take((0,), ClientStep(0), 500) == "it came before the run's begin"
    assert _ledger(0).take((0,), ClientStep(0), BEGIN - 1) == "it came before the run's begin"
    assert _ledger(0).take((1,), ClientStep(0), 2_000) == "rank 1 does not report steps"


def test_a_step_that_ends_after_the_run_does_not_count() -> None:
    ledger = _ledger(0)
    assert ledger.take((0,), ClientStep(0), UNTIL + 1) == ""
    assert _rows(ledger) == []


def test_no_rank_fills_our_memory_with_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpn.traffic.client.ledger.MOST_STEPS", 3)
    ledger = _ledger(0)
    said = [ledger.take((0,), ClientStep(number), 2_000) for number in range(5)]
    assert said == ["", "", "", "rank 0 has told more than 3 steps", "rank 0 has told more than 3 steps"]


def test_a_rank_tells_few_different_collectives_so_that_analysis_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpn.traffic.client.ledger.MOST_DOINGS", 2)
    ledger = _ledger(0)
    said = [
        ledger.take((0,), ClientStep(at, kind="sum", size_bytes=size), 2_000) for at, size in enumerate((1, 2, 3, 2))
    ]
    assert said == ["", "", "rank 0 has told more than 2 different kinds and bytes", ""]
    assert ledger.doings(0) == (("sum", 1), ("sum", 2))


def test_a_sum_is_compared_when_another_rank_has_one_or_the_program_says_so() -> None:
    ledger = _ledger(0, 1)
    ledger.take((0,), ClientStep(0, checksum="aa"), 2_000)
    ledger.take((1,), ClientStep(1, checksum="aa"), 2_000)
    ledger.take((0,), ClientStep(2), 3_000)
    assert ledger.compared == 0
    ledger.take((1,), ClientStep(0, checksum="aa"), 3_000)
    assert ledger.compared == 1
    ledger.take((0,), ClientStep(3, wrong=0), 3_000)
    assert ledger.compared == 2


def test_a_step_is_no_surer_than_its_line_came_after_the_end_that_it_claims() -> None:
    ledger = _ledger(0)
    ledger.take((0,), ClientStep(0, begin_ns=1_100, end_ns=1_900), 2_000)
    assert ledger.late_ns == 100
    ledger.take(
        (0,), ClientStep(1, begin_ns=2_100, end_ns=2_900), 6_000
    )  # printed afterwards, with times of its own making
    assert ledger.late_ns == 3_100


def test_a_line_that_is_held_up_leaves_no_doubt_beyond_the_begin_of_the_next_step() -> None:
    ledger = _ledger(0, 1)
    ledger.take((0,), ClientStep(0, begin_ns=1_100, end_ns=1_900), 6_000)
    assert ledger.late_ns == 4_100
    ledger.take((1,), ClientStep(1, begin_ns=1_901, end_ns=5_990), 6_000)
    assert ledger.late_ns == 4_100, "of another rank"
    ledger.take((0,), ClientStep(1, begin_ns=1_950, end_ns=5_990), 6_000)
    assert ledger.late_ns == 50
