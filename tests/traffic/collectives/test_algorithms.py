"""Every algorithm leaves the right data everywhere, sends what its formula says, and ends whatever overtakes what."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traffic.collectives.memory import MTU, one, shuffled, timed
from traffic.collectives.content import initial
from traffic.collectives.program import Expected, Piece, Program
from traffic.collectives.registry import COLLECTIVES

GROUPS = (2, 3, 4, 5, 7, 8, 16)
SIZES = (1, MTU - 1, MTU, MTU + 1, 1_000_000)

WIRE: dict[str, Callable[[int, int], float]] = {
    "all-reduce/ring": lambda n, size: 2 * (n - 1) * size,
    "all-gather/ring": lambda n, size: (n - 1) * size,
    "reduce-scatter/ring": lambda n, size: (n - 1) * size,
    "broadcast/ring": lambda n, size: (n - 1) * size,
}
"""Bytes on all links together, without headers."""


def named(name: str, n: int, size: int, slices: int = 1) -> tuple[Program, ...]:
    kind, _, algorithm = name.partition("/")
    return one(kind, algorithm, n, size, slices=slices)


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("n", GROUPS)
def test_everyone_ends_with_the_right_data_and_the_wire_carries_what_the_formula_says(name: str, n: int) -> None:
    for size in SIZES:
        programs = named(name, n, size, slices=2)
        outcome = shuffled(programs, seed=size + n)
        assert outcome.wrong == 0, size
        assert outcome.wire.total() == pytest.approx(WIRE[name](n, size)), size


@given(
    st.sampled_from(list(COLLECTIVES)), st.sampled_from(GROUPS), st.integers(1, 40_000), st.integers(1, 5), st.data()
)
@settings(max_examples=60)
def test_nothing_depends_on_the_order_in_which_things_arrive(
    name: str, n: int, size: int, slices: int, data: st.DataObject
) -> None:
    outcome = shuffled(named(name, n, size, slices), data.draw(st.integers(0, 2**32)), iterations=3)
    assert outcome.wrong == 0
    for of_rank in outcome.timed.values():
        whole = [timed for timed in of_rank if timed.span == 0]
        assert [timed.iteration for timed in whole] == [0, 1, 2]
        assert all(timed.begin_ns <= timed.end_ns for timed in of_rank)


def _sum(ranks: range, piece: Piece) -> list[int]:
    """The oracle: one Python integer after the other."""
    totals = [0] * -(-piece.size_bytes // MTU)
    for rank in ranks:
        for block, word in enumerate(initial(rank, 0, piece, MTU).tolist()):
            totals[block] += word
    last = piece.size_bytes - (len(totals) - 1) * MTU
    return [total % (1 << 64) for total in totals[:-1]] + [totals[-1] % (1 << 8 * min(last, 8))]


def test_what_is_expected_of_an_all_reduce_is_the_sum_of_what_all_had() -> None:
    from traffic.collectives.content import total

    for size in (1, 7, 8, MTU - 1, MTU + 3, 5 * MTU):
        piece = Piece(3, 1, size)
        assert total(tuple(range(5)), 0, piece, MTU).tolist() == _sum(range(5), piece)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_what_is_checked_is_all_that_the_collective_is_for(name: str) -> None:
    """Every byte at every rank that ends with it; nothing is right by not being looked at."""
    n, size = 5, 12_345
    kind = name.partition("/")[0]
    looked_at = [
        sum(expected.piece.size_bytes for span in program.spans for expected in span.expected)
        for program in named(name, n, size, slices=3)
    ]
    if kind == "reduce-scatter":
        assert sum(looked_at) == size
    else:
        assert looked_at == [size] * n


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_a_ring_is_as_fast_as_its_bound(n: int) -> None:
    """2 (n - 1) / n of the data at the rate of a NIC, though every message takes 100 us to arrive."""
    size, rate_bps = 4_000_000, 200e6
    outcome = timed(one("all-reduce", "ring", n, size, slices=8, mtu=4096), rate_bps, latency_ns=100_000)
    bound_ns = 2 * (n - 1) / n * size * 8e9 / rate_bps
    took = max(timed.end_ns for of_rank in outcome.timed.values() for timed in of_rank)
    assert bound_ns <= took <= 1.01 * bound_ns


def test_without_slices_a_ring_idles() -> None:
    """What the slices are for: on a path as long as a chunk, a chunk sent whole waits for the one before."""
    size, rate_bps = 4_000_000, 200e6
    slow = timed(one("all-reduce", "ring", 4, size, slices=1, mtu=4096), rate_bps, latency_ns=20_000_000)
    fast = timed(one("all-reduce", "ring", 4, size, slices=8, mtu=4096), rate_bps, latency_ns=20_000_000)
    assert max(t.end_ns for t in fast.timed[0]) < 0.95 * max(t.end_ns for t in slow.timed[0])


def test_contents_differ_wherever_they_come_from() -> None:
    words = [
        int(initial(rank, iteration, Piece(buffer, index, MTU), MTU)[0])
        for rank in range(3)
        for iteration in range(3)
        for buffer in range(3)
        for index in range(3)
    ]
    assert len(set(words)) == len(words)
    assert np.unique(initial(0, 0, Piece(0, 0, 1000 * MTU), MTU)).size == 1000


def _expected(program: Program) -> list[Expected]:
    return [expected for span in program.spans for expected in span.expected]


@pytest.mark.parametrize("name", COLLECTIVES)
def test_before_anything_is_sent_the_data_is_wrong(name: str) -> None:
    """The check tells a collective that did nothing: some rank expects what it does not have."""
    for program in named(name, 4, 10_000):
        for expected in _expected(program):
            if expected.ranks != (program.rank,):
                assert (expected.ranks, expected.buffer, expected.index) != (
                    (program.rank,),
                    expected.piece.buffer,
                    expected.piece.index,
                )
                return
    pytest.fail("every rank expects just what it has")
