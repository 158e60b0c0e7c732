"""Every algorithm leaves the right data everywhere, sends what its formula says, and ends whatever overtakes what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.traffic.collectives import tree
from hpn.traffic.collectives.buffer_contents import initial, total
from hpn.traffic.collectives.program import Expected, Piece, Program
from hpn.traffic.collectives.registry import COLLECTIVES
from tests.traffic.collectives.memory import MTU, one, shuffled, timed

GROUPS = (2, 3, 4, 5, 7, 8, 16)
SIZES = (1, MTU - 1, MTU, MTU + 1, 1_000_000)


def _doubling(n: int, size: int) -> int:
    power = 1 << n.bit_length() - 1
    return 2 * (power - 1 + n - power) * size


WIRE: dict[str, Callable[[int, int], int]] = {
    "all-reduce/ring": lambda n, size: 2 * (n - 1) * size,
    "all-reduce/tree": lambda n, size: 2 * (n - 1) * size,
    "all-reduce/halving-doubling": _doubling,
    "all-reduce/hierarchical": lambda n, size: 2 * (n - 1) * size,
    "all-reduce/dimension-rings": lambda n, size: 2 * (n - 1) * size,
    "all-reduce/dimension-direct": lambda n, size: 2 * (n - 1) * size,
    "all-gather/ring": lambda n, size: (n - 1) * size,
    "reduce-scatter/ring": lambda n, size: (n - 1) * size,
    "broadcast/ring": lambda n, size: (n - 1) * size,
    "broadcast/tree": lambda n, size: (n - 1) * size,
    "all-to-all/pairwise": lambda n, size: (n - 1) * size,
    "all-to-all/direct": lambda n, size: (n - 1) * size,
    "send-recv/shift": lambda n, size: n * size,
}
"""Bytes on all links together, without headers; one rank to a host."""

ENDS: dict[str, Callable[[int, list[int], int], Counter[tuple[int, ...]]]] = {
    "all-reduce": lambda n, chunks, _: Counter({tuple(range(n)): sum(chunks)}),
    "all-gather": lambda n, chunks, _: Counter({(i,): chunks[i] for i in range(n)}),
    "reduce-scatter": lambda n, chunks, i: Counter({tuple(range(n)): chunks[i]}),
    "broadcast": lambda _, chunks, __: Counter({(0,): sum(chunks)}),
    "all-to-all": lambda n, chunks, i: Counter({(j,): chunks[i] for j in range(n) if j != i}),
    "send-recv": lambda n, chunks, i: Counter({((i - 1) % n,): sum(chunks)}),
}
"""What member i must hold in the end: bytes by whose data they are the sum of."""


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
        assert outcome.wire.total() == WIRE[name](n, size), size


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
    for size in (1, 7, 8, MTU - 1, MTU + 3, 5 * MTU, 40_000 * MTU + 3):
        piece = Piece(3, 1, size)
        assert total(tuple(range(5)), 0, piece, MTU).tolist() == _sum(range(5), piece)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_what_is_checked_is_all_that_the_collective_is_for(name: str) -> None:
    """Every byte at every rank that ends with it; nothing is right by not being looked at."""
    n, size = 5, 25 * MTU
    for program in named(name, n, size, slices=3):
        looked_at: Counter[tuple[int, ...]] = Counter()
        for expected in _expected(program):
            looked_at[expected.ranks] += expected.piece.size_bytes
        assert looked_at == ENDS[name.partition("/")[0]](n, [5 * MTU] * 5, program.rank)


@pytest.mark.parametrize("n", range(2, 40))
def test_of_two_trees_nobody_but_one_passes_data_on_in_both(n: int) -> None:
    trees = [tree._parents(n), tree._other_parents(n)]
    inner = [{parent for member, parent in enumerate(parents) if parent != member} for parents in trees]
    assert len(inner[0] & inner[1]) <= 1
    for parents in trees:
        children = Counter(parent for member, parent in enumerate(parents) if parent != member)
        assert max(children.values()) <= 2
        assert sorted(tree._from_the_root(parents)) == [m for m in range(n) if parents[m] != m]
        assert sum(parents[m] == m for m in range(n)) == 1


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
