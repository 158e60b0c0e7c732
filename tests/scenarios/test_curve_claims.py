"""Claims answered by a curve and by a region: the loss over exposed communication, and flap patterns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.failover.analysis.job import Death, Iteration, JobEdge, JobMetrics, MessageTimes, SpanResult
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.judge.verdict import Outcome
from hpn.scenarios.paper import flap_claims
from hpn.scenarios.paper.flap_claims import HPN, PATTERNS, SINGLE, Pattern, flap_job
from hpn.scenarios.paper.measures import ClaimEvidence
from hpn.scenarios.paper.models import LLAMA_7B
from hpn.scenarios.paper.share_claims import _RUNS, SHARES, link_down_job, lost_and_share, share_of
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric
from tests.scenarios.measured import FAILURE, REPAIR, metrics

_TIMES = MessageTimes(1, 1, 1.0, 1.0, 1.0)


def _evidence(runs: Mapping[str, DrillMetrics]) -> ClaimEvidence:
    return ClaimEvidence(runs, {}, {}, inventory(load_fabric("tiny")))


def _job(
    iterations: tuple[Iteration, ...], *, compute_ms: float = 0.0, died: bool = False, after: float = 2.0
) -> DrillMetrics:
    span = SpanResult("forward 0", "compute", 0, 4, 9, compute_ms, compute_ms, compute_ms, 0, 0, 0)
    death = (Death(10**9, "a>b#0", 0, None, 0),) if died else ()
    edges = (JobEdge(2.0, after, after, 0.0, False, 0.0),)
    mean_ms = iterations[0].ms if iterations else 0.0
    job = JobMetrics(
        2, 2, 1.0, iterations, mean_ms, (span,), _TIMES, edges, 10, 0, death, 0, {}, wrong=0, open_ms=0.0
    )  # fmt: skip
    return replace(metrics((FAILURE, REPAIR), ()), job=job)


def _chain(*iterations_ms: float, begin_ms: float = 0.0) -> tuple[Iteration, ...]:
    ends = list(accumulate(iterations_ms, initial=begin_ms))[1:]
    return tuple(
        Iteration(at, round((end - ms) * 1e6), round(end * 1e6), 0)
        for at, (ms, end) in enumerate(zip(iterations_ms, ends, strict=True))
    )


def _cut(compute_ms: float, sum_ms: float, times: float) -> DrillMetrics:
    """A job cut from 1 to 3 s, whose sums take so many times as long from then on, and one iteration far longer."""
    usual, slow = compute_ms + sum_ms, compute_ms + times * sum_ms
    before = round(1000 // usual)
    return _job(_chain(*[usual] * before, 900.0, *[slow] * 60), compute_ms=compute_ms)


def test_the_loss_is_that_of_settled_iterations() -> None:
    assert lost_and_share(_cut(90.0, 10.0, 2.0)) == pytest.approx((0.1, 1 - 100 / 110), abs=1e-3)
    assert lost_and_share(_cut(0.0, 50.0, 2.0)) == pytest.approx((1.0, 0.5))


def test_a_job_that_stands_still_has_lost_all_and_one_of_few_iterations_tells_nothing() -> None:
    stands = _job(_chain(*[100.0] * 9), compute_ms=90.0)
    assert lost_and_share(stands) == pytest.approx((0.1, 1.0))
    assert lost_and_share(_job(_chain(400.0, 400.0), compute_ms=90.0)) is None


@given(st.floats(0.0, 0.9), st.floats(0.0, 0.9))
def test_the_share_of_a_loss_lies_between_the_measured_ones(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    found = share_of(0.0625, [(low, low / (1 + low)), (high, high / (1 + high))])
    if found is None:
        assert low == high or not low / (1 + low) <= 0.0625 <= high / (1 + high)
    else:
        assert low <= found <= high


def test_llamas_share_by_hand() -> None:
    """13.4 GB of 16-bit gradients over 8 NICs of 50 GB/s, round a ring of 32: 64.9 ms; 1.588 s of compute."""
    assert LLAMA_7B.share(256, 2) == pytest.approx(0.0649 / (0.0649 + 1.588), abs=1e-4)
    low, high = SHARES
    assert low == pytest.approx(0.0393, abs=1e-4)
    assert high == pytest.approx(0.0756, abs=1e-4)


def _curve(times: float) -> dict[str, DrillMetrics]:
    return {name: _cut(100.0 - share, share, times) for name, share in zip(_RUNS, range(4, 80, 12), strict=False)}


def test_the_papers_loss_agrees_if_its_share_is_that_of_its_model() -> None:
    found = link_down_job(_evidence(_curve(2.0)))
    assert found.agrees
    assert "-6.25% lies at 6." in found.ours
    assert [round(point["share"], 2) for point in found.points] == [0.04, 0.16, 0.28, 0.4, 0.52, 0.64, 0.76]


@pytest.mark.parametrize("times", [1.0, 1.3, 9.0])
def test_a_wrong_loss_differs(times: float) -> None:
    """Planted: nothing is lost, too little, or so much that the paper's loss lies at no share of its model."""
    assert link_down_job(_evidence(_curve(times))).agrees is False


def _flap(halt_ms: float) -> DrillMetrics:
    return _job(_chain(435, 435 + halt_ms, 435))


def _flaps(single: float, hpn: float, longer: Pattern, halt_ms: float) -> dict[str, DrillMetrics]:
    runs = {each.name(drill): _flap(ms) for drill, ms in ((SINGLE, single), (HPN, hpn)) for each in PATTERNS}
    return runs | {longer.name(SINGLE): _flap(halt_ms)}


def test_a_region_of_patterns_halts_a_single_tor_longer_than_nine_seconds_and_hpn_nowhere() -> None:
    found = flap_job(_evidence(_flaps(4290, 0, PATTERNS[-1], 12_900)))
    assert found.agrees
    assert found.ours == f"halted longer by 1 of {len(PATTERNS)} patterns, up to 12.9 s; HPN by 0, up to 0.0 s"
    assert found.points[-1] == {"count": 5, "down_ms": 600, "period_ms": 4000, "single_ms": 12_900, "hpn_ms": 0.0}


def test_a_job_that_died_has_no_halt_among_the_points() -> None:
    runs = _flaps(4290, 0, PATTERNS[-1], 12_900) | {PATTERNS[0].name(SINGLE): _job(_chain(435), died=True)}
    found = flap_job(_evidence(runs))
    assert found.points[0] == {"count": 1, "down_ms": 200, "period_ms": 800, "hpn_ms": 0.0}
    assert "halted longer by 2 of" in found.ours
    assert "up to death; HPN by 0" in found.ours


def test_no_pattern_that_halts_longer_or_hpn_that_halts_too_differ() -> None:
    assert flap_job(_evidence(_flaps(4290, 0, PATTERNS[-1], 8591))).agrees is False
    assert flap_job(_evidence(_flaps(4290, 9500, PATTERNS[-1], 12_900))).agrees is False


def test_a_job_that_a_flap_killed_has_halted_for_good() -> None:
    for dead in (_job(_chain(435), died=True), _job(_chain(435), after=0.0)):
        assert dead.job is not None
        assert flap_claims.halt(dead.job).outcome is Outcome.PASS


def test_a_halt_within_a_tick_of_nine_seconds_is_none() -> None:
    near = _flap(9000.4).job
    assert near is not None
    assert flap_claims.halt(near).outcome is Outcome.INCONCLUSIVE
