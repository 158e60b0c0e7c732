"""Absolute rates of jobs are compared always: shares of a run's own rate let the slower policy look better."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.job import Done, JobMetrics
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.comparison.differences import differences
from hpn.results.comparison.figures import Key, values_of
from hpn.results.comparison.groups import Across, Compared, grouped
from hpn.results.comparison.job_figures import job_figures
from hpn.results.text.answer import ONE_RUN, answer
from tests.results.measured import client, job
from tests.results.sample import MANIFEST, metrics, verdict

RATE = Key("job", "iterations before the first fault", "/s", more_is_worse=False)
BUSBW = Key("job", "mean busbw", "bit/s", more_is_worse=False)


def of_rate(rate: float) -> JobMetrics:
    """A job that did so many iterations a second before the first fault."""
    made = job()
    return replace(made, edges=tuple(replace(edge, rate_before=rate) for edge in made.edges))


def run(found: DrillMetrics, version: str = "1") -> Compared:
    return Compared("runs/one", replace(MANIFEST, versions={"hpn": version}), found, verdict(metrics()))


def test_a_slower_job_is_worse_whatever_share_of_its_own_rate_it_kept() -> None:
    """'iterations during 79.53 % / 94.82 %' was all: the second policy did a tenth of the iterations."""
    one, other = (replace(metrics(), job=of_rate(rate)) for rate in (21.5, 1.84))
    groups = grouped([run(one), run(other, "2")], list(Across))
    found = differences(groups)
    (rate,) = (each for each in found if each.key == RATE)
    assert rate.is_worse
    assert (rate.reference.median, rate.other and rate.other.median) == (21.5, 1.84)
    assert answer(groups, found, ()).endswith(f"2 is worse than 1 in job: iterations before the first fault. {ONE_RUN}")


def test_a_rate_is_as_exact_as_the_ticks_that_it_is_of() -> None:
    values = values_of(run(replace(metrics(), job=job())))
    assert (values[RATE].low, values[RATE].measured, values[RATE].high) == pytest.approx((1 / 1.001, 1.0, 1 / 0.999))
    assert values[BUSBW].measured == 36_408
    assert values[BUSBW].low == pytest.approx(36_408 * 900 / 900.5)


def test_the_rate_in_the_fault_is_absolute_too_and_its_interval_is_what_may_have_been_done() -> None:
    made = job()
    done = Done(promised=43.0, low=7.0, high=9.0)
    edge = replace(made.edges[0], rate_before=21.5, rate_during=4.0, during=done)
    (found,) = (
        each for each in job_figures(replace(metrics(), job=replace(made, edges=(edge,)))) if "during" in each[1]
    )
    assert found == ("job", "iterations during the first fault", "/s", 4.0, (3.5, 4.5))


def test_mean_busbw_is_of_the_time_of_all_collectives_and_not_of_the_slowest() -> None:
    (sum_,) = job().spans
    fast = replace(sum_, mean_ms=100.0, busbw_bps=9 * sum_.busbw_bps, count=4)
    both = replace(metrics(), job=replace(job(), spans=(sum_, fast)))
    found = {name: value for _, name, _, value, _ in job_figures(both)}
    assert found["mean busbw"] == pytest.approx(1.8 * sum_.busbw_bps)


def test_a_job_without_a_fault_has_the_rate_of_its_run_and_one_that_ended_none_has_no_rate() -> None:
    calm = replace(metrics(), edges=(), job=replace(job(), edges=()))
    assert [(name, value) for _, name, unit, value, _ in job_figures(calm) if unit == "/s"] == [("iterations", 1.0)]
    none = replace(job(), mean_ms=0.0, spans=())
    assert list(job_figures(replace(metrics(), job=none))) == []
    assert list(job_figures(metrics())) == []


def test_a_client_beside_a_job_has_rates_of_its_own() -> None:
    both = replace(metrics(), job=job(), beside=client())
    assert [where for where, name, *_ in job_figures(both) if name == RATE.name] == ["job", "client"]
