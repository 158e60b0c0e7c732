"""Getting jobs to where they are run: side by side, with what went wrong told in one line, and nothing left running."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from scenarios.campaign import pools
from scenarios.campaign.block import REPORT, read_report
from scenarios.campaign.pools import Processes, last_words, run_job
from scenarios.campaign.result import Job, Report, Result
from scenarios.campaign.where import pool_for
from testbed.errors import InputError, MachineError
from testbed.vm.engines import EngineSpec
from tests.scenarios.campaign.samples import CUT, PLAN, sequence

ROOT = Path(pools.__file__).resolve().parents[2]


def jobs(count: int) -> list[Job]:
    return [Job(PLAN, (sequence(CUT, index=index),)) for index in range(count)]


def test_every_job_comes_back_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "run_job", lambda job, *_rest: Report(error=str(job.sequences[0].index), exit_code=3))
    found = list(Processes(3, tmp_path / "work").run(iter(jobs(7))))
    assert sorted(int(report.error) for _job, report in found) == list(range(7))
    assert all(int(report.error) == job.sequences[0].index for job, report in found)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_campaign_left_is_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "run_job", lambda *_all: Report())
    (tmp_path / "work" / "hpn-campaign-old").mkdir(parents=True)
    list(Processes(1, tmp_path / "work").run(jobs(1)))
    assert list(tmp_path.iterdir()) == []


def test_a_guest_s_clock_does_not_time_a_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    """In virtual time three sequences may end within a millisecond, in another year."""
    steps = [sequence(CUT, index=index) for index in range(3)]

    def guest(_job: Job, _spec: EngineSpec, folder: Path) -> str:
        ended = [TypeAdapter(Result).dump_python(Result(step, (), ended_at=1.001), mode="json") for step in steps]
        (folder / REPORT).write_text("".join(json.dumps({"result": each}) + "\n" for each in ended))
        return ""

    monkeypatch.setattr(pools, "_guest", guest)
    before = time.time()
    results = run_job(Job(PLAN, tuple(steps)), "uml-virtual-time").results
    times = [moment for result in results for moment in (result.started_at, result.ended_at)]
    assert times == sorted(times)
    assert before <= times[0] < times[-1] <= time.time()


def test_a_traceback_is_told_in_one_line_with_its_place() -> None:
    lines = [
        "Traceback (most recent call last):",
        f'  File "{ROOT}/failover/analysis/metrics/edge.py", line 172, in _share',
        "    return plbm.max()",
        '  File "/usr/lib/python3/site-packages/numpy/_methods.py", line 43, in _amax',
        "ValueError: zero-size array",
        "",
    ]
    assert last_words(lines) == "ValueError: zero-size array (at failover/analysis/metrics/edge.py:172, in _share)"
    mistake = "hpn: this is a mistake of hpn itself, and says nothing of the network; please report it"
    assert last_words([*lines, mistake]) == last_words(lines)
    assert last_words(["no more memory"]) == "no more memory"
    assert last_words([]) == "it said nothing"


def test_a_scheduler_without_dask_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scenarios.campaign.machines", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MachineError, match=r"pip install 'hpn\[campaign\]'"):
        pool_for("host", tmp_path, None, "tcp://127.0.0.1:1")


def test_jobs_and_scheduler_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--jobs"):
        pool_for("host", tmp_path, 2, "tcp://127.0.0.1:1")
    assert pool_for("host", tmp_path, 5, None).width == 5


def test_a_report_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    assert read_report(tmp_path / "none") == Report()
    (tmp_path / REPORT).write_text('{"stood": true}\n{"error": ["no bird", 3]}\n{"leaks": ["proc')
    assert read_report(tmp_path) == Report(error="no bird", exit_code=3, stood=True)
