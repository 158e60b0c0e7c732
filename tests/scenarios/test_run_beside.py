"""What a run folder has beside its figures: the drill as asked, where it ran, what its workers counted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpn.results.run.drill import DRILL, AskedLimit, PlannedMoment
from hpn.scenarios.drill import catalogue
from hpn.scenarios.run.auxiliary_files import copy_beside, queue_pairs_of, workers_of
from hpn.scenarios.run.engines import RunBody, body_from
from hpn.scenarios.run.origin import Origin, commit_of, installed_commit, machine
from hpn.scenarios.run.phase import in_phase
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.fabric.build import build
from hpn.testbed.vm.engines import HOST
from hpn.traffic.jobengine.setup import JobReport, JobWorkerReport, NicCounters, QueuePairReport
from hpn.traffic.workers.messages import SendReport, TrafficReport, WorkerReport
from tests.failover.synthetic import MS, S, flow
from tests.results.whole import whole_run


@pytest.mark.parametrize("name", ["link-down", "flap-storm", "host-replaced", "job-restarts", "link-down-bursts"])
def test_a_drill_of_the_library_comes_back_as_it_was_asked(name: str) -> None:
    drill = catalogue.load(name)
    asked = asked_of(drill, build(drill.topology))
    assert DRILL.validate_json(DRILL.dump_json(asked)) == asked
    assert (asked.name, asked.summary, asked.source) == (name, drill.summary, f"{name}.yaml")
    assert [limit.text for limit in asked.expects] == [each.text for each in drill.expectations]
    edges = [(m.at_ns, m.kind, m.index) for fault in asked.faults for m in fault.moments]
    assert edges == [(e.at_ns, e.kind, e.index) for planned in drill.timeline.faults for e in planned.edges]
    assert bool(asked.job) == (drill.job is not None)
    assert bool(asked.workload) == drill.streams


def test_it_is_the_drill_as_this_run_made_it() -> None:
    drill = catalogue.load("link-down")
    later = in_phase(drill.slowed(20), 2)
    asked = asked_of(later, build(later.topology))
    (fault,) = asked.faults
    shift_ns = later.timeline.healthy_ns - drill.timeline.healthy_ns
    assert shift_ns > 0
    assert fault.moments[0] == PlannedMoment(1500 * MS + shift_ns, "failure", 0, "link-down p0.s0.h0.r0.0")
    assert asked.workload["load"] == pytest.approx(0.4 / 20)
    assert asked.expects[0] == AskedLimit(
        "worst outage of sender flows at failure below 200 ms (slow kernel; the file: 50 ms)",
        *("worst_outage", "below", 200e6, "ms", None, "failure"),
    )


def test_a_fault_s_parameters_have_the_keys_of_a_drill_file() -> None:
    drill = catalogue.load("flap-storm")
    (fault,) = asked_of(drill, build(drill.topology)).faults
    assert (fault.kind, fault.target) == ("flap-storm", "plane0")
    assert fault.parameters == {"every": 500 * MS, "down": 300 * MS, "duration": 3 * S}


def test_the_commit_is_that_of_the_checkout_and_of_no_repository_above(tmp_path: Path) -> None:
    git = ("git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main")
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "file").write_text("1")
    assert commit_of(tmp_path) == "", "nothing is committed"
    subprocess.run([*git, "add", "file"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    told = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert commit_of(tmp_path) == told
    (tmp_path / "file").write_text("2")
    assert commit_of(tmp_path) == f"{told}-dirty"
    (tmp_path / "installed").mkdir()
    assert commit_of(tmp_path / "installed") == ""


@pytest.mark.parametrize(
    ("written", "commit"),
    [
        ('{"url": "https://x/hpn", "vcs_info": {"vcs": "git", "commit_id": "' + 40 * "a" + '"}}', 40 * "a"),
        ('{"url": "file:///x", "dir_info": {}}', ""),
        ('{"vcs_info": {"commit_id": "</script>"}}', ""),
        ('{"vcs_info": [1]}', ""),
        ("{", ""),
        ("[]", ""),
        (None, ""),
    ],
)
def test_a_commit_that_pip_installed_is_known_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str | None, commit: str
) -> None:
    place = tmp_path / "somewhere-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Name: somewhere\nVersion: 1.0\n")
    if written is not None:
        (place / "direct_url.json").write_text(written)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installed_commit("somewhere") == commit
    assert installed_commit("no-such-package-of-anybody") == ""


def test_a_machine_is_told_without_its_name(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n")
    (tmp_path / "meminfo").write_text("MemTotal:       24683992 kB\n")
    (tmp_path / "os-release").write_text('NAME="x"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
    found = machine(tmp_path, tmp_path / "os-release")
    assert (found["cpu"], found["memory_mb"]) == ("Some CPU @ 2 GHz", 24105)
    assert found["system"] == "Debian GNU/Linux 12 (bookworm)"
    assert set(found) == {"arch", "kernel", "cpus", "cpu", "memory_mb", "system"}
    assert set(machine(tmp_path / "nowhere", tmp_path / "nothing")) == {"arch", "kernel", "cpus"}


def test_what_workers_of_streams_counted_is_told_by_queue_pair_and_worker() -> None:
    sender = SendReport(0, 100, 50, 98, 1, 2, 3, 4, 5, {"EAGAIN": 6})
    worker = WorkerReport(0, (sender,), {0: 90, 1: 9}, 7, 8, 9, 10, {"EPERM": 11}, 12, True, 13, 0.5)
    report = TrafficReport((worker,), 14, (), ())
    (pair,) = queue_pairs_of(report, (flow(0),))
    assert (pair.flow, pair.name, pair.worker, pair.died_at_ns) == (0, flow(0).name, 0, None)
    assert pair.counters["error EAGAIN"] == 6
    assert (pair.counters["packets"], pair.counters["packets_acknowledged"], pair.counters["naks"]) == (100, 98, 1)
    told = workers_of(report)
    assert (told.softnet_drops, told.workers[0].cpu_s, told.workers[0].errors) == (14, 0.5, {"EPERM": 11})
    assert (told.workers[0].counters["received"], told.workers[0].counters["late_ticks"]) == (99, 13)


def test_what_workers_of_a_job_counted_is_told_too() -> None:
    pair = QueuePairReport(3, 100, 5, 400_000, 7 * S)
    worker = JobWorkerReport(1, (pair,), (NicCounters("n", {}),), 0, 0, 0, {}, 2, 0.25)
    report = JobReport((worker,), 0, (), (), (), ())
    (told,) = queue_pairs_of(report, ())
    assert (told.name, told.worker, told.died_at_ns) == ("", 1, 7 * S)
    assert told.counters == {"packets": 100, "packets_again": 5, "bytes_acknowledged": 400_000}
    assert workers_of(report).workers[0].counters["late_ticks"] == 2


def test_an_analysis_has_what_the_run_left_and_nothing_else(tmp_path: Path) -> None:
    run, made = whole_run(tmp_path / "run"), tmp_path / "made"
    made.mkdir()
    (run.path / "paths.jsonl").unlink()
    copy_beside(run, type(run)(made))
    names = sorted(path.name for path in made.iterdir())
    assert names == ["drill.json", "fabric.json", "host.jsonl", "hw_counters.json", "queue_pairs.jsonl", "workers.json"]
    assert all((made / name).read_bytes() == (run.path / name).read_bytes() for name in names)


def test_a_guest_is_told_what_was_typed_and_where_outside_of_it() -> None:
    known = Origin("abc", {"cpus": 2})
    body = RunBody("link-down", ("drill", "run", "link-down"), 0, 3, 10, keep_records=False, origin=known)
    told = body_from(body.as_json()).order(HOST)
    assert (told.command, told.origin, told.slowed, told.phase) == (body.command, known, 10, 3)
