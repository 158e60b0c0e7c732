"""A drill that runs a job, wherever its kind makes a difference: loads, room on disk, manifest, expectations."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from failover.analysis.job import Iteration, JobMetrics, MessageTimes
from scenarios.drill.job import Job, told
from scenarios.drill.load import drill_from
from scenarios.drill.model import Drill
from scenarios.drill.workload import queue_pairs_of
from scenarios.expect.evidence import Evidence, RunFacts
from scenarios.expect.figure import Figure
from scenarios.expect.job import METRICS
from scenarios.run import space
from scenarios.run.calibrate import Calibration, check
from testbed.errors import MachineError
from testbed.fabric.build import build
from testbed.files.document import parse
from tests.scenarios.measured import metrics
from traffic.congestion.sets import PARAMETERS
from traffic.job.collective import CollectiveWork

MS = 10**6
HEAD = "drill: d\nsummary: s\ntopology: tiny\n"
EXPECT = "timeline: {healthy: 2 s}\nexpect:\n  - "


def _job(section: str, expect: str = "iteration_time: {below: 300 ms}") -> Drill:
    return drill_from(parse(f"{HEAD}job: {section}\n{EXPECT}{expect}\n", "d.yaml"), Path())


JOB = _job("{collective: {kind: all-reduce, size: 1 MB}, tick: 2 ms}")


def test_a_machine_s_calibration_is_of_streams() -> None:
    """A job sends no faster than its acknowledgements come."""
    poor = Calibration(1.0, 1.0, 1.0)
    check(JOB, poor)
    with pytest.raises(MachineError, match="calibrated for 1;"):
        check(replace(JOB, job=None), poor)


def test_queue_pairs_of_one_nic_take_no_more_room_than_their_port_lets_through() -> None:
    fabric = build(JOB.topology)
    one, eight = (
        queue_pairs_of(replace(JOB, job=replace(JOB.job or Job(CollectiveWork("", 1)), queue_pairs=count)), fabric)
        for count in (1, 8)
    )
    assert len(eight) == 8 * len(one)
    wanted = space.job_record_bytes(one, 10**10, keep=False)
    assert space.job_record_bytes(eight, 10**10, keep=False) == wanted
    assert space.job_record_bytes(one, 10**10, keep=True) == 2 * wanted
    nics = {pair.src_nic: pair.rate_pps for pair in one}
    assert wanted == pytest.approx(sum(nics.values()) * 10 * 256, rel=1e-6)


def test_a_drill_s_tick_is_that_of_what_it_runs() -> None:
    assert JOB.tick_ns == 2 * MS
    assert replace(JOB, job=None).tick_ns == MS


def test_the_manifest_says_how_a_job_was_connected() -> None:
    section = "{collective: {kind: all-reduce, size: 1 MB}, recovery: selective-repeat, ib_timeout: 10, retry_count: 3,"
    section += " congestion: swift-2020, stretch: 20, queue_pairs: 4, queue_pair_choice: in-turn, split: yes}"
    job = _job(section).job
    assert job is not None
    said = told(job, build(JOB.topology))
    wait_ms = 4.096e-3 * 2**10
    assert said["recovery"] == "selective-repeat"
    assert (said["retry_timer"], said["ib_timeout"], said["retry_count"]) == ("ib", 10, 3)
    assert said["first_wait_ms"] == said["longest_wait_ms"] == pytest.approx(wait_ms)
    assert said["patience_ms"] == pytest.approx(4 * wait_ms)
    assert said["congestion"] == "swift-2020"
    assert {key for key in said if key.startswith("congestion ")} == {
        f"congestion {field.name}" for field in fields(PARAMETERS["swift-2020"].values)
    }
    assert (said["congestion_slower"], said["congestion_longer"]) == (JOB.topology.scale, 20)
    assert (said["queue_pairs"], said["queue_pair_choice"], said["split"]) == (4, "in-turn", True)
    assert told(job.slowed(10), build(JOB.topology))["congestion_slower"] == 10 * JOB.topology.scale


def _figure(key: str, job: JobMetrics) -> Figure:
    drill = _job("{collective: {kind: all-reduce, size: 1 MB}}", f"{key}: {{below: 300 ms}}")
    metric = next(each for each in METRICS if each.key == key)
    assert drill.expectations[0].metric is metric
    return metric.measure(drill.expectations[0], Evidence(replace(metrics((), ()), job=job), RunFacts()))


def _measured(open_ms: float) -> JobMetrics:
    times = MessageTimes(1, 1, 1.0, 1.0, 1.0)
    return JobMetrics(2, 2, 0.5, (Iteration(0, 0, 100 * MS, 0),), 100.0, (), times, (), 10, 0, (), 0, {}, 0, open_ms)


def test_an_iteration_that_never_ends_is_the_longest_of_the_run() -> None:
    """Nothing failed, and so there is no edge that it could stand at."""
    assert _figure("iteration_time", _measured(50.0)).value == 100
    stuck = _figure("iteration_time", _measured(2000.0))
    assert (stuck.value, stuck.open_ended) == (2000, True)
