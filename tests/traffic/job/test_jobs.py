"""Jobs of collectives, of messages and of checkpoints beside them; figures from what they took."""

from __future__ import annotations

from collections import Counter

import pytest

from hpn.testbed.errors import InputError
from hpn.traffic.collectives.locations import Place
from hpn.traffic.collectives.program import ARRIVAL, COMPUTE, ITERATION, MESSAGE, Program, Span, Spend, Stream, Timed
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.job.collective import CollectiveWork
from hpn.traffic.job.job import Checkpoints, Job, Site, Work, build
from hpn.traffic.job.messages import MESSAGE_PATTERNS, MessageWork
from tests.traffic.collectives.memory import MTU, Outcome, hosts_of, shuffled, timed
from tests.traffic.job.figures import (
    RankTimes,
    collective_ns,
    completion_times,
    iterations,
    iterations_per_second,
    percentile,
    segment_bytes,
    wrong_blocks,
)

MS = 10**6
RATE_BPS = 1e9


def _job(work: Work, n: int, rails: int = 1, checkpoints: Checkpoints | None = None) -> Job:
    return build(work, Site(tuple(hosts_of(n, rails)), MTU, Scale(), nvlink_bps=100e9), checkpoints)


def _times(job: Job, outcome: Outcome) -> list[RankTimes]:
    return [RankTimes(p, outcome.timed[p.rank]) for p in job.programs if p.rank not in job.background]


def test_collectives_repeat_and_give_one_row() -> None:
    job = _job(CollectiveWork("all-reduce", 400 * MTU, pause_ns=5 * MS), 4)
    ranks = _times(job, timed(job.programs, RATE_BPS, iterations=3))
    took_ns = collective_ns(ranks)
    assert wrong_blocks(ranks) == 0
    assert 1.5 * 400 * MTU / took_ns == pytest.approx(0.125, rel=0.01)
    assert [done.iteration for done in iterations(ranks)] == [0, 1, 2]
    for done in iterations(ranks):
        assert done.time_ns == pytest.approx(5 * MS + took_ns, rel=0.01)
        assert done.exposed_ns == pytest.approx(took_ns, rel=0.01)


@pytest.mark.parametrize(
    ("grouping", "ways", "groups"),
    [
        ("all", 1, {(0, 1, 2, 3, 4, 5, 6, 7)}),
        ("rail", 1, {(0, 2, 4, 6), (1, 3, 5, 7)}),
        ("rail", 2, {(0, 4), (2, 6), (1, 5), (3, 7)}),
        ("host", 1, {(0, 1), (2, 3), (4, 5), (6, 7)}),
    ],
)
def test_groups_run_a_collective_at_once(grouping: str, ways: int, groups: set[tuple[int, ...]]) -> None:
    job = _job(CollectiveWork("all-reduce", 100 * MTU, grouping=grouping, ways=ways), 8, rails=2)
    outcome = timed(job.programs, RATE_BPS)
    assert outcome.wrong == 0
    seen = {expected.ranks for p in job.programs for span in p.spans for expected in span.expected}
    assert seen == groups
    begins = {t.begin_ns for rank in _times(job, outcome) for span, t in rank.spans() if span.kind == "all-reduce"}
    assert begins == {0}


@pytest.mark.parametrize("pattern", MESSAGE_PATTERNS)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_pattern_brings_its_messages_whatever_overtakes_what(pattern: str, seed: int) -> None:
    job = _job(MessageWork(pattern, 3 * MTU + 1, count=2, every_ns=50, seed=seed), 8, rails=2)
    outcome = shuffled(job.programs, seed, iterations=3)
    assert outcome.wrong == 0
    sent = sum(span.kind == MESSAGE for p in job.programs for span in p.spans)
    assert len(completion_times(_times(job, outcome))) == 3 * sent


def _pairs(pattern: str, n: int = 8, rails: int = 2, seed: int = 0, fan_in: int | None = None) -> set[tuple[int, int]]:
    job = _job(MessageWork(pattern, MTU, seed=seed, fan_in=fan_in), n, rails)
    return set(timed(job.programs, RATE_BPS).wire)


def test_patterns_are_what_they_are_called() -> None:
    permutation = _pairs("permutation")
    assert sorted(source for source, _ in permutation) == sorted(target for _, target in permutation) == list(range(8))
    assert all(source % 2 == target % 2 for source, target in permutation)
    assert _pairs("same-rail") == {(rank, (rank + 2) % 8) for rank in range(8)}
    assert _pairs("incast") == {(source, target) for target in (0, 1) for source in range(target + 2, 8, 2)}
    assert _pairs("incast", fan_in=2) == {(2, 0), (4, 0), (3, 1), (5, 1)}
    assert _pairs("incast-victim") == {(4, 0), (6, 2), (5, 1), (7, 3)}, "the third to the first, the last to the second"
    assert _pairs("random", seed=1) != _pairs("random", seed=2)
    assert len(_pairs("all-to-all")) == 8 * 6, "but to the other GPU of the same host"
    pulled = _pairs("kv-pull")
    assert pulled >= {(0, 4), (2, 6), (1, 5), (3, 7)}, "from prefill to decode"
    assert pulled >= {(4, 0), (6, 2), (5, 1), (7, 3)}, "and asked for"


def test_what_crosses_rails_arrives_on_the_rail_of_its_target() -> None:
    job = _job(MessageWork("cross-rail", MTU), 8, rails=2)
    outcome = timed(job.programs, RATE_BPS)
    assert len(outcome.rails) == 8
    for source, target, rail in outcome.rails:
        assert source % 2 != target % 2 == rail


def test_bursts_begin_every_so_often_and_pairs_do_not_wait_for_others() -> None:
    job = _job(MessageWork("same-rail", 10 * MTU, count=3, every_ns=2 * MS), 4)
    ranks = _times(job, timed(job.programs, RATE_BPS, iterations=4))
    assert [done.begin_ns for done in iterations(ranks)] == [0, 2 * MS, 4 * MS, 6 * MS]
    took = completion_times(ranks)
    one = 10 * MTU * 8
    assert Counter(took) == Counter({one: 16, 2 * one: 16, 3 * one: 16}), "posted at once, sent in turn"


def test_a_pull_takes_from_asking_to_having() -> None:
    job = _job(MessageWork("kv-pull", 100 * MTU), 2)
    (took,) = completion_times(_times(job, timed(job.programs, RATE_BPS, latency_ns=10_000)))
    assert took == pytest.approx(100 * MTU * 8 + 64 * 8 + 2 * 10_000, abs=2)


def test_an_incast_shares_the_receiver() -> None:
    job = _job(MessageWork("incast", 100 * MTU), 4)
    took = completion_times(_times(job, timed(job.programs, RATE_BPS)))
    assert percentile(took, 100) == pytest.approx(3 * 100 * MTU * 8, rel=0.02)


@pytest.mark.parametrize(
    ("work", "n", "rails", "problem"),
    [
        (MessageWork("storm", 1), 4, 1, "no message pattern 'storm'; there are permutation"),
        (MessageWork("permutation", 0), 4, 1, "0 bytes; at least 1"),
        (MessageWork("permutation", 1, count=0), 4, 1, "is to send 0 messages"),
        (MessageWork("permutation", 1), 2, 2, "needs two GPUs on every rail"),
        (MessageWork("all-to-all", 1), 1, 1, "needs two GPUs"),
        (MessageWork("cross-rail", 1), 4, 1, "needs two rails"),
        (MessageWork("incast-victim", 1), 3, 1, "victim does not fit a rail of 3 GPUs"),
        (MessageWork("incast", 1, fan_in=4), 4, 1, "incast of 4 to 1 does not fit a rail of 4"),
        (CollectiveWork("all-reduce", 1, grouping="pod"), 4, 1, "no grouping 'pod'; there are all, rail, host"),
        (CollectiveWork("all-reduce", 1, ways=0), 4, 1, "0 ways at once"),
        (CollectiveWork("all-reduce", 1, ways=3), 4, 1, "at least two different ranks"),
        (CollectiveWork("all-reduce", 1, grouping="host"), 4, 1, "at least two different ranks"),
        (CollectiveWork("all-reduce", 0), 4, 1, "0 bytes; at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(work: Work, n: int, rails: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        _job(work, n, rails)


def test_checkpoints_are_written_beside_the_job_by_every_host() -> None:
    storage = (Place("store", 0, "store.r0", "10.9.0.1", 0),)
    job = _job(CollectiveWork("all-reduce", 10 * MTU, grouping="rail"), 4, 2, Checkpoints(20 * MTU, 5 * MS, storage))
    assert job.background == {4, 5, 6}
    assert [job.places[rank].host for rank in (4, 5, 6)] == ["h0", "h1", "store"]
    outcome = timed(job.programs, RATE_BPS, iterations=3)
    assert outcome.wrong == 0
    assert {pair: size for pair, size in outcome.wire.items() if pair[1] == 6} == {
        (4, 6): 3 * 20 * MTU,
        (5, 6): 3 * 20 * MTU,
    }
    begins = sorted(t.begin_ns for t in outcome.timed[4] if t.span == 0)
    assert begins == [0, 5 * MS, 10 * MS]
    assert [rank.program.rank for rank in _times(job, outcome)] == [0, 1, 2, 3]


def test_checkpoints_without_bytes_or_storage_are_refused() -> None:
    for checkpoints in (Checkpoints(0, 1, (Place("s", 0, "s", "10.9.0.1", 0),)), Checkpoints(1, 1, ())):
        with pytest.raises(InputError, match="checkpoints need a size"):
            _job(CollectiveWork("all-reduce", 1), 2, 1, checkpoints)


def test_traffic_between_segments_is_counted() -> None:
    places = [Place(f"h{i}", 0, f"h{i}.r0", f"10.0.0.{i}", i // 2) for i in range(4)]
    job = build(CollectiveWork("all-gather", 8 * MTU), Site(tuple(places), MTU, Scale()))
    assert segment_bytes(job.programs, places) == {
        (0, 0): 6 * MTU,
        (0, 1): 6 * MTU,
        (1, 1): 6 * MTU,
        (1, 0): 6 * MTU,
    }


def test_what_stays_in_a_host_is_no_traffic() -> None:
    job = _job(CollectiveWork("all-gather", 8 * MTU), 4, rails=2)
    assert segment_bytes(job.programs, job.places) == {(0, 0): 2 * 6 * MTU}


def _by_hand(*spans: tuple[str, int, int]) -> RankTimes:
    """A rank that timed these kinds of spans in iteration 0."""
    program = Program(0, MTU, 1, (Spend(0, (), 1, Stream.COMPUTE),), tuple(Span(k, k, (0,)) for k, _, _ in spans))
    return RankTimes(program, [Timed(at, 0, begin, end, at) for at, (_, begin, end) in enumerate(spans)])


def test_exposed_communication_is_what_no_compute_covers() -> None:
    rank = _by_hand(
        (ITERATION, 0, 100),
        (COMPUTE, 10, 30),
        (COMPUTE, 50, 60),
        ("all-reduce", 20, 55),  # 30 to 50 exposed
        ("all-gather", 40, 58),
        (MESSAGE, 70, 75),  # all of it
        (ARRIVAL, 0, 100),  # says nothing
    )
    (done,) = iterations([rank])
    assert (done.time_ns, done.exposed_ns) == (100, 25)
    assert wrong_blocks([rank]) == sum(range(7))


def test_an_iteration_counts_when_every_rank_has_done_it() -> None:
    quick, slow = _by_hand((ITERATION, 0, 50)), _by_hand((ITERATION, 10, 90))
    assert [(d.begin_ns, d.end_ns, d.time_ns) for d in iterations([quick, slow])] == [(0, 90, 80)]
    assert iterations([quick, RankTimes(slow.program, [])]) == []
    assert iterations_per_second([]) is None


def test_percentiles_are_by_nearest_rank() -> None:
    values = list(range(1, 101))
    assert [percentile(values, p) for p in (0, 1, 50, 99, 99.5, 100)] == [1, 1, 50, 99, 100, 100]
    assert percentile([7], 99) == 7
