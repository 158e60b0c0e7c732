"""A job is judged by what surely ended: nothing before the edge, a cut-off iteration, sums that nobody compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.job import DeathFact, JobMetrics
from hpn.failover.analysis.model import EdgeKind
from hpn.results.judge.verdict import Check, Outcome
from hpn.results.text.checks import describe
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.selection import At, Bound
from hpn.scenarios.expect.verdict import judge_expectation
from hpn.scenarios.run.judgement import judge_measured
from hpn.scenarios.run.measurement import Measurement
from tests.failover.test_job_metrics import FACTS, every, told
from tests.scenarios.client_runs import client_alone

from .measured import MS, edge, metrics

PASS, FAIL, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
S = 1000 * MS
CUT = edge(EdgeKind.FAILURE, 2050, 4000)


def at_most(key: str, limit: float, job: JobMetrics, at: At = At.FAILURE, bound: Bound = Bound.AT_MOST) -> Check:
    seen = Evidence(replace(metrics((CUT,), ()), job=job), RunFacts())
    return judge_expectation(Expectation(METRICS[key], bound, limit, edge=at), seen)


def _ends(found: Check) -> tuple[float, float, float]:
    assert found.measured is not None
    assert found.low is not None
    assert found.high is not None
    return found.low, found.measured, found.high


def stopped(*iterations: tuple[float, float], samples: int = 512) -> JobMetrics:
    """These iterations, a link cut at 2,050 ms, and no other ends until the run does at 4,000."""
    return told(list(iterations), 2050, facts=replace(FACTS, samples=samples))


@pytest.mark.parametrize("key", ["lost_iterations", "lost_samples", "iterations_during", "iterations_after"])
def test_where_no_iteration_ended_before_the_edge_nothing_was_promised(key: str) -> None:
    """A 40 MB AllReduce of 3 s: its NIC is gone for good, and it ends neither before nor after."""
    for job in (stopped(), stopped((0, 3900))):
        found = at_most(key, 1, job)
        assert (found.outcome, found.measured) == (OPEN, None), describe(found)
        assert found.evidence == "no iteration ended before the edge"


def test_lost_iterations_are_no_whole_numbers_and_have_an_interval() -> None:
    job = told([*every(100, 2000), (2000, 2600), *every(100, 4000, 2600)], 2050)
    found = at_most("lost_iterations", 4, job)
    assert found.outcome is FAIL
    low, measured, high = _ends(found)
    assert measured == pytest.approx(5, abs=0.1)
    assert low < measured < high < low + 0.1
    assert at_most("lost_iterations", measured, job).outcome is OPEN
    samples = at_most("lost_samples", 1e9, replace(job, samples=512))
    assert _ends(samples) == pytest.approx((512 * low, 512 * measured, 512 * high))


def test_the_iteration_that_the_run_cut_off_late_may_be_lost_or_not() -> None:
    """19 of 20 are lost at least; the one that has been under way since the failure may end or not."""
    found = at_most("lost_iterations", 19.3, stopped(*every(100, 2000)))
    assert found.outcome is OPEN
    low, _, high = _ends(found)
    assert low == pytest.approx(18.9, abs=0.2)
    assert high == pytest.approx(low + 1.1, abs=0.2)
    during = at_most("iterations_during", 0.03, stopped(*every(100, 2000)))
    assert (during.outcome, during.low) == (OPEN, 0)


@pytest.mark.parametrize(("limit_s", "outcome"), [(5, OPEN), (1, FAIL)])
@pytest.mark.parametrize("at", [At.FAILURE, At.ANY])
def test_an_iteration_that_the_run_cut_off_fails_only_beyond_its_limit(at: At, limit_s: int, outcome: Outcome) -> None:
    found = at_most("iteration_time", limit_s * S, stopped(*every(100, 2000)), at)
    assert (found.outcome, found.open_ended, found.never) == (outcome, True, False)
    assert found.measured == pytest.approx(2000, abs=5)
    assert "measured >= 199" in describe(found)


@pytest.mark.parametrize("at", [At.FAILURE, At.ANY])
def test_an_iteration_of_a_job_that_died_never_ends(at: At) -> None:
    dead = replace(FACTS, deaths=(DeathFact(2500 * MS, "0>1"),))
    found = at_most("iteration_time", 60 * S, told(every(100, 2000), 2050, facts=dead), at)
    assert (found.outcome, found.never, found.margin) == (FAIL, True, None)
    none = at_most("iteration_time", 60 * S, told([], 2050, facts=dead), at)
    assert (none.outcome, none.never) == (FAIL, True)
    assert none.measured == pytest.approx(4000, abs=1)
    again = replace(dead, checkpoint_every=3)  # it would have been started again
    assert at_most("iteration_time", 60 * S, told(every(100, 2000), 2050, facts=again), at).outcome is OPEN


def test_a_job_that_stands_is_neither_alive_nor_as_fast_as_before() -> None:
    stands, goes_on = stopped(*every(100, 2000)), told(every(100, 4000), 2050)
    for job, outcome in ((stands, OPEN), (goes_on, PASS)):
        assert at_most("job_survives", 1, job, At.ANY).outcome is outcome
        assert at_most("busbw", 70e6, job, At.ANY, Bound.AT_LEAST).outcome is outcome
        assert at_most("fct_p99", S, job, At.ANY).outcome is outcome
        assert at_most("job_restarts", 0, job, At.ANY).outcome is outcome
        assert at_most("packets_retransmitted", 1000, job, At.ANY).outcome is outcome
    silent = told([], 2050, messages=0)
    assert at_most("job_survives", 1, silent, At.ANY).outcome is OPEN


def test_results_that_nobody_checked_are_not_right() -> None:
    assert at_most("wrong_results", 0, told(every(100, 4000), 2050), At.ANY).outcome is PASS
    unchecked = {rank: tuple(replace(span, checked=False) for span in of) for rank, of in FACTS.spans.items()}
    found = at_most("wrong_results", 0, told(every(100, 4000), 2050, facts=replace(FACTS, spans=unchecked)), At.ANY)
    assert (found.outcome, found.evidence) == (OPEN, "no result was checked")


def _client(compared: int | None) -> Measurement:
    """A client whose ranks end steps, of which so many were compared and none is wrong."""
    found = client_alone((Expectation(METRICS["wrong_results"], Bound.AT_MOST, 0),))
    job = found.facts.job
    assert job is not None
    assert job.client is not None
    assert found.job is not None
    spans = found.job.spans.copy()
    spans["wrong"] = 0
    facts = replace(found.facts, job=replace(job, client=replace(job.client, compared=compared)))
    return replace(found, facts=facts, job=replace(found.job, spans=spans))


@pytest.mark.parametrize(("compared", "outcome"), [(80, PASS), (0, OPEN), (None, OPEN)])
def test_sums_of_a_client_that_nobody_compared_are_not_right(compared: int | None, outcome: Outcome) -> None:
    _, verdict = judge_measured(_client(compared))
    assert [each.outcome for each in verdict.checks if each.text.startswith("wrong")] == [outcome]
