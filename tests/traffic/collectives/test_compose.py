"""Ways between ranks, groups that fit no algorithm, and collectives that follow one another or run at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError
from hpn.traffic.collectives.compose import Composer
from hpn.traffic.collectives.locations import CrossRail, Inside
from hpn.traffic.collectives.program import Program, Send, Spend, Stream
from hpn.traffic.collectives.rank import RankMachine
from hpn.traffic.collectives.registry import COLLECTIVES, KINDS, Collective, collective
from hpn.traffic.collectives.split import split, split_twice
from tests.traffic.collectives.memory import INSIDE, MTU, hosts_of, one, shuffled, timed

SIZE = 100 * MTU


def test_a_message_inside_a_host_takes_nvlink_time_and_no_nic() -> None:
    composer = Composer(hosts_of(2, rails=2), MTU, INSIDE)
    composer.message(0, 1, SIZE, "hello")
    programs = composer.programs()
    outcome = timed(programs, rate_bps=1e6)
    assert (outcome.wrong, outcome.wire.total(), outcome.local[0, 1]) == (0, 0, SIZE)
    assert max(t.end_ns for t in outcome.timed[1]) == INSIDE.transfer_ns(SIZE) == round(SIZE * 8e9 / 100e9)


def test_a_message_to_another_rail_goes_over_nvlink_to_the_nic_of_that_rail() -> None:
    composer = Composer(hosts_of(4, rails=2), MTU, INSIDE)
    composer.message(0, 3, SIZE, "hello")
    outcome = timed(composer.programs(), rate_bps=1e9)
    assert (outcome.wrong, outcome.rails) == (0, {(0, 3, 1)})
    assert max(t.end_ns for t in outcome.timed[3]) == INSIDE.transfer_ns(SIZE) + SIZE * 8


def test_where_the_fabric_leads_from_rail_to_rail_it_may_carry_that_message() -> None:
    composer = Composer(hosts_of(4, rails=2), MTU, replace(INSIDE, cross_rail=CrossRail.FABRIC))
    composer.message(0, 3, SIZE, "hello")
    programs = composer.programs()
    assert timed(programs, rate_bps=1e9).rails == {(0, 3, 0)}
    assert not any(isinstance(op, Spend) and op.stream is Stream.NVLINK for op in programs[0].ops)


def test_nvlink_carries_one_message_of_a_gpu_after_the_other() -> None:
    composer = Composer(hosts_of(3, rails=3), MTU, INSIDE)
    for target in (1, 2):
        composer.message(0, target, SIZE, "hello")
    outcome = timed(composer.programs(), rate_bps=1e9)
    assert [max(t.end_ns for t in outcome.timed[rank]) for rank in (1, 2)] == [
        INSIDE.transfer_ns(SIZE),
        2 * INSIDE.transfer_ns(SIZE),
    ]


@pytest.mark.parametrize("slices", [1, 4])
def test_a_hierarchical_all_reduce_stays_in_its_rails_and_loads_every_nic_alike(slices: int) -> None:
    hosts, rails, size = 4, 4, 16 * 16 * MTU
    outcome = shuffled(one("all-reduce", "hierarchical", hosts * rails, size, slices=slices, rails=rails), seed=3)
    assert outcome.wrong == 0
    assert {(source % rails, target % rails) for source, target in outcome.wire} == {(r, r) for r in range(rails)}
    assert set(outcome.wire.values()) == {2 * (hosts - 1) * size // hosts // rails}
    assert outcome.local.total() == 2 * (rails - 1) * size * hosts


def test_a_hierarchical_all_reduce_finds_its_rails_in_any_order_of_ranks() -> None:
    composer = Composer(hosts_of(6, rails=2), MTU, INSIDE)
    composer.collective(collective("all-reduce", "hierarchical"), (0, 1, 3, 2, 5, 4), SIZE, "x")
    outcome = shuffled(composer.programs(), seed=1)
    assert outcome.wrong == 0
    assert all(source % 2 == target % 2 for source, target in outcome.wire)


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter"])
def test_a_ring_over_hosts_of_several_gpus_loads_every_nic_alike(kind: str) -> None:
    """As many rings as rails: each crosses between hosts on a rail of its own, and between rails inside them."""
    hosts, rails = 3, 4
    n, size = hosts * rails, hosts * rails * rails * 2 * MTU
    outcome = shuffled(one(kind, "ring", n, size, slices=2, rails=rails), seed=5)
    assert outcome.wrong == 0
    assert {rail for _, target, rail in outcome.rails if rail == target % rails} == set(range(rails))
    assert {(source // rails, target // rails) for source, target in outcome.wire} == {(0, 1), (1, 2), (2, 0)}
    rounds = 2 if kind == "all-reduce" else 1
    assert set(outcome.wire.values()) == {rounds * (n - 1) * size // n // rails}


def test_a_ring_over_hosts_of_several_gpus_is_as_fast_as_all_their_nics() -> None:
    n, rails, size = 8, 4, 4_000_000
    outcome = timed(one("all-reduce", "ring", n, size, slices=8, rails=rails), 200e6)
    assert outcome.wrong == 0
    bound_ns = 2 * (n - 1) / n * size / rails * 8e9 / 200e6
    assert max(t.end_ns for t in outcome.timed[0]) == pytest.approx(bound_ns, rel=0.02)


@pytest.mark.parametrize("ranks", [(0, 1, 2), (0, 2, 1, 3), (0, 1)])
def test_a_ring_takes_any_ranks_in_any_order(ranks: tuple[int, ...]) -> None:
    composer = Composer(hosts_of(4, rails=2), MTU, INSIDE)
    for kind in ("all-reduce", "all-gather", "reduce-scatter"):
        composer.collective(collective(kind), ranks, SIZE, "x", slices=2)
    assert shuffled(composer.programs(), seed=1).wrong == 0


def test_pairwise_exchanges_with_one_at_a_time_and_direct_with_all() -> None:
    for algorithm, peers in (("pairwise", [2]), ("direct", [2, 3, 0])):
        posts = RankMachine(one("all-to-all", algorithm, 4, SIZE)[1]).start(0, 0)
        assert [post.peer for post in posts] == peers


def test_in_an_all_to_all_everyone_gets_something_else() -> None:
    for program in one("all-to-all", "direct", 4, SIZE):
        sent = [op.piece for op in program.ops if isinstance(op, Send)]
        assert len(set(sent)) == 3


def test_a_hierarchical_all_reduce_of_one_host_and_of_odd_sizes_comes_out_right() -> None:
    for n, rails in ((3, 3), (6, 3), (10, 5)):
        for size in (1, MTU + 1, 7 * MTU + 5):
            outcome = shuffled(one("all-reduce", "hierarchical", n, size, rails=rails), seed=size)
            assert outcome.wrong == 0
            assert (outcome.wire.total() > 0) == (n > rails)


def test_ranks_without_common_rails_are_refused_where_rails_have_to_be_common() -> None:
    composer = Composer(hosts_of(8, rails=4), MTU, INSIDE)
    with pytest.raises(InputError, match=r"same rails at every host: h0 has \[0, 1\], h1 has \[1, 2\]"):
        composer.collective(collective("all-reduce", "hierarchical"), (0, 1, 5, 6), SIZE, "x")


@pytest.mark.parametrize(
    ("ranks", "size", "slices", "message"),
    [
        ((0,), 1, 1, "at least two different ranks"),
        ((0, 1, 0), 1, 1, "at least two different ranks"),
        ((0, 4), 1, 1, "there are ranks 0 to 3"),
        ((0, 1), 0, 1, "is to carry 0 bytes"),
        ((0, 1), 1, 0, "is to be cut into 0 slices"),
    ],
)
def test_groups_and_sizes_that_make_no_sense_are_refused(
    ranks: tuple[int, ...], size: int, slices: int, message: str
) -> None:
    composer = Composer(hosts_of(4), MTU, INSIDE)
    with pytest.raises(InputError, match=message):
        composer.collective(collective("all-reduce"), ranks, size, "x", slices=slices)


def test_unknown_names_are_answered_with_those_that_there_are() -> None:
    with pytest.raises(InputError, match="no collective 'gather'; there are all-reduce, all-gather"):
        collective("gather")
    with pytest.raises(InputError, match="no algorithm 'star' for broadcast; there are ring, tree"):
        collective("broadcast", "star")
    assert collective("all-reduce").algorithm == "ring"


def test_a_collective_of_a_kind_that_nobody_counts_is_an_error_when_it_is_added() -> None:
    registry = Registry("collective", lambda c: c.name, (), COLLECTIVES._lacks, of=Collective)
    with pytest.raises(TypeError, match="does not say its kind"):
        registry.add(Collective("gather", "ring", "", lambda plan: None))
    assert {entry.kind for entry in COLLECTIVES.values()} == set(KINDS)


def _timed_spans(programs: tuple[Program, ...], seed: int) -> dict[int, dict[str, tuple[int, int]]]:
    outcome = shuffled(programs, seed)
    assert outcome.wrong == 0
    spans = {program.rank: program.spans for program in programs}
    return {
        rank: {spans[rank][t.span].label: (t.begin_ns, t.end_ns) for t in of_rank}
        for rank, of_rank in outcome.timed.items()
    }


@pytest.mark.parametrize("seed", range(5))
def test_collectives_follow_one_another_at_each_rank_or_run_at_once(seed: int) -> None:
    composer = Composer(hosts_of(4), MTU, INSIDE)
    ring = collective("all-reduce")
    first = composer.collective(ring, range(4), SIZE, "first", slices=2)
    after = {rank: (end,) for rank, end in first.items()}
    composer.collective(ring, (3, 1, 0, 2), SIZE, "second", after=after)
    composer.collective(ring, range(4), SIZE, "beside")
    for spans in _timed_spans(composer.programs(), seed).values():
        assert spans["first"][1] == spans["second"][0]
        assert spans["beside"][0] == 0 or spans["beside"][0] == spans["first"][0]


def test_groups_of_their_own_do_not_wait_for_each_other() -> None:
    composer = Composer(hosts_of(6), MTU, INSIDE)
    for ranks in ((0, 2), (1, 3)):
        composer.collective(collective("all-reduce"), ranks, SIZE, "x")
    programs = composer.programs()
    assert [program.rank for program in programs] == [0, 1, 2, 3], "ranks 4 and 5 have nothing to do"
    assert shuffled(tuple(programs[rank] for rank in (0, 2)), 1).wrong == 0


def test_tags_are_unique_between_two_ranks_and_alike_at_both() -> None:
    composer = Composer(hosts_of(3), MTU, INSIDE)
    for _ in range(3):
        composer.collective(collective("all-reduce"), range(3), SIZE, "x", slices=2)
    programs = composer.programs()
    for program in programs:
        sends = [(op.peer, op.tag) for op in program.ops if isinstance(op, Send)]
        assert len(set(sends)) == len(sends)
        assert max(tag for _, tag in sends) < program.tags


def test_data_is_cut_evenly_into_whole_packets_and_none_is_lost() -> None:
    assert split(10 * MTU + 1, 4, MTU) == (2 * MTU, 3 * MTU, 3 * MTU, 2 * MTU + 1)
    assert split(1, 3, MTU) == (0, 0, 1)
    assert split(0, 2, MTU) == (0, 0)
    for size in (1, MTU, 5 * MTU + 7, 1000 * MTU - 1):
        for parts, slices in ((1, 1), (3, 2), (7, 5), (16, 8)):
            pieces = split_twice(size, parts, slices, MTU)
            assert (sum(pieces), len(pieces)) == (size, parts * slices)
            assert sum(piece % MTU != 0 for piece in pieces) <= 1


def test_inside_a_host_every_byte_takes_its_time() -> None:
    assert Inside(8e9).transfer_ns(1000) == 1000
    assert Inside(1e15).transfer_ns(1) == 1, "nothing is instant"
