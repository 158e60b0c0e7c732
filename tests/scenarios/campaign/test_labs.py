"""Jobs of a campaign as tasks of a pool: the report that comes home, and what went wrong told in one line."""

from __future__ import annotations

import json
import time
from pathlib import Path

from pydantic import TypeAdapter

from hpn.scenarios.batch.pool.task import OUTPUT, Done, Task, hung
from hpn.scenarios.campaign import last_words as module
from hpn.scenarios.campaign.lab_job import REPORT, read_report
from hpn.scenarios.campaign.labs import PooledLabs, report_of, task_for
from hpn.scenarios.campaign.last_words import last_words
from hpn.scenarios.campaign.result import Report, Result, SequenceJob
from tests.scenarios.campaign.samples import CUT, PLAN, sequence
from tests.scenarios.pool.pretended import Makes, Pretended

ROOT = Path(module.__file__).resolve().parents[2]
UML = "uml-virtual-time"


def jobs(count: int) -> list[SequenceJob]:
    return [SequenceJob(PLAN, (sequence(CUT, index=index),)) for index in range(count)]


def leaves(code: int, **report: object) -> Makes:
    """A lab's process that leaves this in its report, and says something."""

    def make(_task: Task, folder: Path) -> int:
        (folder / REPORT).write_text("".join(json.dumps({key: value}) + "\n" for key, value in report.items()))
        (folder / OUTPUT).write_text("Killed\n")
        return code

    return make


def test_every_job_comes_back_with_its_report() -> None:
    asked = jobs(3)
    found = list(PooledLabs(Pretended(leaves(0, stood=True, error=["no more memory", 3])), "host").run(iter(asked)))
    assert [job for job, _ in found] == asked
    assert {(report.error, report.exit_code, report.crash) for _, report in found} == {("no more memory", 3, "")}


def test_a_process_that_died_is_a_crash_with_its_last_words() -> None:
    ((_job, report),) = PooledLabs(Pretended(leaves(-9, stood=True)), "host").run(jobs(1))
    assert (report.crash, report.stood) == ("code -9: Killed", True)
    ((_job, report),) = PooledLabs(Pretended(leaves(0, stood=True, crash="code 134: panic")), UML).run(jobs(1))
    assert report.crash == "code 134: panic", "of a guest"


def test_a_job_that_hung_is_a_crash_and_one_that_nobody_could_run_an_error(tmp_path: Path) -> None:
    task = task_for("lab 1", jobs(1)[0], "host")
    assert (task.timeout_s, task.again) == (150.0, False)
    assert report_of(hung(task, tmp_path, 150.0), 0.0).crash == "it hung, and was ended"
    found = report_of(Done(task, 3, tmp_path, 0.0, "the worker at a is of another version"), 0.0)
    assert (found.error, found.exit_code, found.crash) == ("the worker at a is of another version", 3, "")


def test_a_guest_s_clock_does_not_time_a_campaign() -> None:
    """In virtual time three sequences may end within a millisecond, in another year."""
    steps = [sequence(CUT, index=index) for index in range(3)]

    def guest(_task: Task, folder: Path) -> int:
        ended = [TypeAdapter(Result).dump_python(Result(step, (), ended_at=1.001), mode="json") for step in steps]
        (folder / REPORT).write_text("".join(json.dumps({"result": each}) + "\n" for each in ended))
        return 0

    before = time.time()
    ((_job, report),) = PooledLabs(Pretended(guest), UML).run([SequenceJob(PLAN, tuple(steps))])
    times = [moment for result in report.results for moment in (result.started_at, result.ended_at)]
    assert times == sorted(times)
    assert before - 2 <= times[0] < times[-1] <= time.time()


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


def test_a_report_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    assert read_report(tmp_path / "none") == Report()
    (tmp_path / REPORT).write_text('{"stood": true}\n{"error": ["no bird", 3]}\n{"leaks": ["proc')
    assert read_report(tmp_path) == Report(error="no bird", exit_code=3, stood=True)
