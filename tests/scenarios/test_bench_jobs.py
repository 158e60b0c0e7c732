"""The bench of jobs: what is held against what; its times are nobody's promise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.bench import jobs
from scenarios.drill import catalogue
from scenarios.drill.load import load_drill
from testbed.fabric.build import build
from testbed.vm.engines import ENGINES

FOLDER = Path(jobs.__file__).parent
MEASURED = {"job_pps": 6e4, "job_lost": 0.0, "iperf_pps": 6e4, "iperf_lost": 7.0}


@pytest.mark.parametrize(("job", "met"), [(157_000.0, True), (156_999.0, False)])
def test_a_job_has_to_be_as_cheap_as_iperf3_beside_it(job: float, met: bool) -> None:
    ours, beside = jobs.figures({**MEASURED, "job_per_cpu_s": job, "iperf_per_cpu_s": 157_000.0})
    assert (ours.target, ours.met) == (beside.value, met)
    assert "7 lost" in beside.note


def test_the_drill_without_packets_is_otherwise_the_drill_with_them() -> None:
    busy, idle = load_drill(FOLDER / "job.yaml"), load_drill(FOLDER / "job-idle.yaml")
    assert busy.job is not None
    assert idle.job is not None
    assert busy.job != idle.job == replace(busy.job, work=idle.job.work)
    assert (busy.topology, busy.timeline) == (idle.topology, idle.timeline)


@pytest.mark.parametrize(("mean_ms", "met"), [(245.8, True), (245.9, False)])
def test_the_ring_is_held_against_its_bound(monkeypatch: pytest.MonkeyPatch, mean_ms: float, met: bool) -> None:
    """6 MB a rank, in packets of 4096 + 58 bytes at 200 Mbit/s: 243.4 ms."""

    class Ran:
        job = type("Job", (), {"ranks": 4, "mean_ms": mean_ms})

    monkeypatch.setattr(jobs, "_cost", lambda _engine, _drill: Ran)
    figure = jobs.virtual_ring(ENGINES["uml-virtual-time"])
    assert figure.met is met
    assert "bound 243.40: 4 ranks, 4 MB" in figure.note


def test_the_ring_is_that_of_the_target() -> None:
    drill = catalogue.load("link-down-allreduce")
    assert {link.rate_bps for nic in build(drill.topology).nics for link in nic.links} == {200_000_000}
