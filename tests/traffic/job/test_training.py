"""Training iterations: what waits for what, what is hidden behind compute, what a straggler costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.testbed.errors import InputError
from hpn.traffic.collectives.program import MESSAGE, Program
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.job.job import Job, Site, build
from hpn.traffic.job.training import Straggler, Training, _passes, _schedule, _Task
from tests.traffic.collectives.memory import MTU, Outcome, hosts_of, shuffled, timed
from tests.traffic.job.figures import RankTimes, collective_ns, iterations, iterations_per_second

MS = 10**6
RATE_BPS = 1e9


def _site(n: int, rails: int = 1, scale: Scale | None = None) -> Site:
    return Site(tuple(hosts_of(n, rails)), MTU, scale or Scale(), nvlink_bps=100e9)


def _run(training: Training, n: int, rails: int = 1, repeat: int = 2) -> tuple[Job, list[RankTimes]]:
    job = build(training, _site(n, rails))
    return job, _times(job, timed(job.programs, RATE_BPS, iterations=repeat))


def _times(job: Job, outcome: Outcome) -> list[RankTimes]:
    assert outcome.wrong == 0
    return [RankTimes(program, outcome.timed[program.rank]) for program in job.programs]


def _labels(program: Program) -> list[str]:
    return [span.label for span in program.spans]


def test_without_overlap_an_iteration_takes_compute_and_the_all_reduce() -> None:
    """The arithmetic: 9 ms, and 2 (n - 1) / n x 1 MB at 1 Gbit/s."""
    training = Training(compute_ns=9 * MS, data=4, data_bytes=1_024_000, overlap=False)
    _, ranks = _run(training, 4)
    ideal = 1.5 * 1_024_000 * 8
    for done in iterations(ranks):
        assert done.time_ns == pytest.approx(9 * MS + ideal, rel=0.01)
        assert done.exposed_ns == pytest.approx(ideal, rel=0.01)
    per_second = iterations_per_second(iterations(ranks))
    assert per_second == pytest.approx(1e9 / (9 * MS + ideal), rel=0.01)
    assert collective_ns(ranks) == pytest.approx(ideal, rel=0.01)


def test_overlap_hides_all_but_the_last_bucket_behind_the_backward_pass() -> None:
    """Backward 6 ms in four parts of 1.5 ms; each bucket takes 1.2 ms, so just the last is left over."""
    training = Training(compute_ns=9 * MS, data=4, data_bytes=400_000, overlap=True, buckets=4)
    _, ranks = _run(training, 4)
    bucket = 1.5 * 100_000 * 8
    for done in iterations(ranks):
        assert done.exposed_ns == pytest.approx(bucket, rel=0.05)
        assert done.time_ns == pytest.approx(9 * MS + bucket, rel=0.01)


def test_buckets_of_one_group_go_one_after_the_other() -> None:
    """Buckets of 3 ms behind parts of 1.5 ms: they queue, and none begins before the one before has ended."""
    training = Training(compute_ns=9 * MS, data=4, data_bytes=1_000_000, overlap=True, buckets=4)
    job, ranks = _run(training, 4, repeat=1)
    for rank in ranks:
        took = {span.label: timed for span, timed in rank.spans()}
        for bucket in range(3):
            assert took[f"data {bucket}"].end_ns == took[f"data {bucket + 1}"].begin_ns
    assert iterations(ranks)[0].time_ns == pytest.approx(4.5 * MS + 1.5 * 1_000_000 * 8, rel=0.02)
    assert len(job.programs) == 4


def test_a_straggler_delays_everyone_by_just_its_extra_time() -> None:
    training = Training(compute_ns=9 * MS, data=4, data_bytes=100_000, overlap=False)
    _, usual = _run(training, 4)
    _, late = _run(replace(training, stragglers=(Straggler(2, 5 * MS),)), 4)
    for before, after in zip(iterations(usual), iterations(late), strict=True):
        assert after.time_ns - before.time_ns == pytest.approx(5 * MS, rel=0.01)
    computed = {
        rank.program.rank: sum(timed.end_ns - timed.begin_ns for span, timed in rank.spans() if span.kind == "compute")
        for rank in late
    }
    assert computed == {0: 18 * MS, 1: 18 * MS, 2: 28 * MS, 3: 18 * MS}


def test_a_pipeline_fills_and_drains() -> None:
    """1F1B: (micro-batches + stages - 1) passes one after the other, and the messages between them."""
    training = Training(compute_ns=12 * MS, pipeline=4, micro_batches=4, pipeline_bytes=MTU)
    _, ranks = _run(training, 4, repeat=1)
    # One packet a hop: three stages forth and back; and the last stage waits for the third and the fourth micro-batch,
    # which the stage before begins only when it has its gradients back.
    hops = 6 + 2 * 2
    assert iterations(ranks)[0].time_ns == pytest.approx(12 * MS / 4 * (4 + 4 - 1) + hops * MTU * 8, rel=0.001)


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("micro_batches", [1, 2, 4, 7])
def test_every_pass_is_written_once_and_after_what_it_needs(stages: int, micro_batches: int) -> None:
    done: list[tuple[int, _Task]] = []
    for stage, task in _schedule(stages, micro_batches):
        before = stage - 1 if task.forward else stage + 1
        assert not 0 <= before < stages or (before, task) in done
        if not task.forward:
            assert (stage, _Task(True, task.micro_batch)) in done
        done.append((stage, task))
    assert len(done) == len(set(done)) == 2 * stages * micro_batches


def test_a_stage_holds_no_more_micro_batches_than_stages_follow() -> None:
    for stage in range(4):
        held = most = 0
        for task in _passes(4, stage, 8):
            held += 1 if task.forward else -1
            most = max(most, held)
        assert most == 4 - stage


def test_tensor_traffic_stays_in_hosts_and_data_traffic_on_its_rail() -> None:
    training = Training(compute_ns=MS, tensor=2, data=4, tensor_bytes=50_000, data_bytes=100_000, buckets=1)
    job = build(training, _site(8, rails=2))
    outcome = timed(job.programs, RATE_BPS)
    assert outcome.wrong == 0
    assert all(source // 2 == target // 2 for source, target in outcome.local)
    assert all(source % 2 == target % 2 for source, target in outcome.wire)
    assert outcome.wire.total() == 2 * 2 * 3 * 100_000
    assert outcome.local.total() == 4 * 2 * 2 * 50_000, "an AllReduce after forward and one after backward"


def test_experts_exchange_tokens_twice_in_every_pass() -> None:
    training = Training(compute_ns=MS, data=4, expert=2, expert_bytes=10 * MTU, data_bytes=4 * MTU, buckets=1)
    job = build(training, _site(4))
    outcome = timed(job.programs, RATE_BPS)
    assert outcome.wrong == 0
    labels = _labels(job.programs[0])
    assert [label for label in labels if label.startswith("expert")] == [
        f"expert {way} 0 {direction}" for way in ("forward", "backward") for direction in ("to experts", "back")
    ]
    assert {(source // 2, target // 2) for source, target in outcome.wire if abs(source - target) == 1} >= {(0, 0)}
    expert_bytes = 4 * 4 * 5 * MTU  # four ranks, four exchanges, half of the tokens
    assert outcome.wire.total() == expert_bytes + 2 * 3 * 4 * MTU


@pytest.mark.parametrize("seed", range(4))
def test_everything_at_once_ends_right_whatever_overtakes_what(seed: int) -> None:
    training = Training(
        compute_ns=1000,
        tensor=2,
        data=2,
        pipeline=2,
        expert=2,
        micro_batches=3,
        tensor_bytes=3000,
        pipeline_bytes=2000,
        expert_bytes=1500,
        data_bytes=9000,
        algorithm="halving-doubling",
        stragglers=(Straggler(3, 500),),
    )
    outcome = shuffled(build(training, _site(8, rails=2)).programs, seed, iterations=3)
    assert outcome.wrong == 0


@given(
    tensor=st.sampled_from([1, 2, 3]),
    data=st.integers(1, 4),
    pipeline=st.integers(1, 3),
    micro_batches=st.integers(1, 4),
    buckets=st.integers(1, 3),
    sizes=st.tuples(*[st.integers(0, 3 * MTU)] * 2, st.integers(1, 3 * MTU), st.integers(3, 5 * MTU)),
    overlap=st.booleans(),
    algorithm=st.sampled_from(["ring", "tree", "halving-doubling"]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40)
def test_any_iteration_ends_and_ends_right(
    tensor: int,
    data: int,
    pipeline: int,
    micro_batches: int,
    buckets: int,
    sizes: tuple[int, int, int, int],
    overlap: bool,
    algorithm: str,
    seed: int,
) -> None:
    training = Training(
        compute_ns=1000,
        tensor=tensor,
        data=data,
        pipeline=pipeline,
        expert=data,
        micro_batches=micro_batches,
        tensor_bytes=sizes[0],
        expert_bytes=sizes[1],
        pipeline_bytes=sizes[2],
        data_bytes=sizes[3],
        overlap=overlap,
        buckets=buckets,
        algorithm=algorithm,
    )
    job = build(training, _site(tensor * data * pipeline, rails=tensor))
    done = iterations(_times(job, shuffled(job.programs, seed, iterations=2)))
    assert [each.iteration for each in done] == [0, 1]
    assert all(each.time_ns >= 1000 for each in done)


@pytest.mark.parametrize(("micro_batches", "buckets"), [(1, 2), (3, 1), (3, 3), (4, 2)])
def test_the_parts_of_a_computation_are_all_of_it(micro_batches: int, buckets: int) -> None:
    job = build(Training(compute_ns=1000, micro_batches=micro_batches, buckets=buckets), _site(1))
    (times,) = _times(job, timed(job.programs, RATE_BPS))
    assert sum(t.end_ns - t.begin_ns for span, t in times.spans() if span.kind == "compute") == 1000


def test_sizes_and_times_are_scaled_to_the_lab() -> None:
    training = Training(compute_ns=9 * MS, data=2, data_bytes=8_000_000, overlap=False)
    job = build(training, _site(2, scale=Scale(slower=1000, longer=2)))
    sizes = {span.label: span.size_bytes for span in job.programs[0].spans}
    assert sizes["data 0"] == 16_000
    ranks = _times(job, timed(job.programs, RATE_BPS))
    computed = sum(t.end_ns - t.begin_ns for span, t in ranks[0].spans() if span.kind == "compute")
    assert computed == 18 * MS


def test_activations_are_timed_at_their_sender() -> None:
    training = Training(compute_ns=12 * MS, pipeline=2, pipeline_bytes=10 * MTU)
    _, ranks = _run(training, 2, repeat=1)
    took = [t.end_ns - t.begin_ns for span, t in ranks[0].spans() if span.kind == MESSAGE]
    assert took == [10 * MTU * 8]


@pytest.mark.parametrize(
    ("training", "rails", "problem"),
    [
        (Training(1, data=3, data_bytes=9), 1, r"tensor 1 x data 3 x pipeline 1 is 3 ranks; the job has 8 GPUs"),
        (Training(1, data=8, expert=3, data_bytes=9), 1, "expert 3 does not divide data 8"),
        (Training(1, tensor=2, data=4, data_bytes=9), 1, "tensor 2 reaches beyond a host"),
        (Training(1, data=4, pipeline=2, data_bytes=9), 1, "a pipeline needs pipeline_size"),
        (Training(1, data=8), 1, "gradients need data_size of at least 1 B for each of 4 buckets"),
        (Training(0, data=8, data_bytes=9), 1, "compute are at least 1"),
        (
            Training(1, data=8, data_bytes=9, stragglers=(Straggler(8, 1),)),
            1,
            "straggler 8 is none of the ranks 0 to 7",
        ),
    ],
)
def test_what_does_not_fit_is_refused(training: Training, rails: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        build(training, _site(8, rails))
