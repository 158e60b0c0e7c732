"""A job's run, kept and analysed again: equal to the byte, and damaged records are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpn.failover.analysis.job import JobFacts, SpanFact
from hpn.failover.analysis.model import QUICK
from hpn.results.judge.verdict import Outcome
from hpn.results.run.folder import RunFolder, create
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.run.analyse import analyse
from hpn.scenarios.run.judgement import judge_measured
from hpn.scenarios.run.measurement import Facts, JobRecords, Measurement
from hpn.scenarios.run.stored_records import FOLDER, keep, kept
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import parse
from hpn.traffic.jobengine.records import MESSAGE, RETRY, SPAN, STAMP
from tests.failover.synthetic import MS, NO_PACKETS, S, edge, flow
from tests.product.hpn import Hpn
from tests.results.sample import LOAD
from tests.scenarios.run_folders import judged_run

DRILL = """
drill: cut
summary: one link is cut while a job runs
topology: tiny
job: {collective: {kind: all-reduce, size: 1 MB}}
timeline:
  faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 2 s}]
expect:
  - iteration_time: {below: 300 ms}
  - wrong_results: {at_most: 0}
"""
BACKGROUND = 9
"""A rank of which no facts are told."""


def _expectations() -> tuple[Expectation, ...]:
    return drill_from(parse(DRILL, "d.yaml"), Path()).expectations


def _measured() -> Measurement:
    """Two ranks end an iteration every 100 ms, from the first to the ninth second."""
    spans = np.zeros(4 * 80, SPAN)
    for at in range(80):
        for rank in (0, 1):
            for span in (0, 1):
                begin = S + at * 100 * MS + rank
                spans[4 * at + 2 * rank + span] = (rank, at, span, 0, begin, begin + 99 * MS)
    spans["rank"][-1] = BACKGROUND
    messages = np.zeros(10, MESSAGE)
    messages["bytes"], messages["posted_ns"], messages["completed_ns"] = 4096, S, np.arange(10) * MS + 2 * S
    programs = (SpanFact("iteration", "iteration", 0, 0), SpanFact("sum", "all-reduce", 1_000_000, 2))
    counters = {"p0.s0.h0.r0": {"packet_seq_err": 3}}
    job = JobFacts({0: programs, 1: programs}, 2, MS // 2, 1000, 3, counters)
    facts = Facts(_expectations(), QUICK, (flow(0),), (edge(4 * S, 9 * S),), S, 3 * S, 9 * S, LOAD, 0, (), job=job)
    retries = np.array([(0, 1, 5 * S), (0, 0, 5 * S + MS)], RETRY)
    stamps = np.array([(0, 1, 900, 84_000, 5 * S)], STAMP)
    return Measurement(facts, (), *NO_PACKETS, None, JobRecords(spans, messages, retries, stamps))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return judged_run(tmp_path / "run", _measured())


def test_metrics_timeline_and_verdict_come_again_byte_for_byte(run: RunFolder) -> None:
    found = analyse(run)
    assert found.differences == ()
    assert found.verdict.outcome is Outcome.PASS
    assert {"iterations.jsonl", "spans.jsonl", "counters.json"} < {*found.files}
    assert found.metrics.job is not None
    assert len(found.metrics.job.iterations) == 80
    stamps = run.series().stamps
    assert stamps is not None
    assert [int(stamps.took_us.sum()), int(stamps.wait_us.sum())] == [1, 84]


def test_records_of_before_retransmissions_were_recorded_are_analysed_as_they_were(tmp_path: Path) -> None:
    measured = _measured()
    assert measured.job is not None
    older = judged_run(tmp_path / "run", replace(measured, job=replace(measured.job, retries=None, stamps=None)))
    assert analyse(older).differences == ()
    assert older.series().stamps is None
    messages = older.series().messages
    assert messages is not None
    assert messages.retries is None


def test_the_run_folder_has_a_line_for_each_iteration_and_for_each_span_of_a_rank(run: RunFolder) -> None:
    lines = {name: (run.path / name).read_text().splitlines() for name in ("iterations.jsonl", "spans.jsonl")}
    first = json.loads(lines["iterations.jsonl"][0])
    assert first == {"number": 0, "begin_ns": S + 1, "end_ns": S + 99 * MS + 1, "wrong": 0, "ms": 99}
    spans = [json.loads(line) for line in lines["spans.jsonl"]]
    assert len(spans) == 4 * 80 - 1
    assert [span["begin_ns"] for span in spans] == sorted(span["begin_ns"] for span in spans)
    assert {(span["rank"], span["label"]) for span in spans} == {
        (rank, label) for rank in (0, 1) for label in ("iteration", "sum")
    }
    assert json.loads((run.path / "counters.json").read_text()) == {"p0.s0.h0.r0": {"packet_seq_err": 3}}


def test_what_the_records_say_goes_to_a_folder_of_its_own(run: RunFolder, tmp_path: Path) -> None:
    (run.path / "spans.jsonl").write_text("{}\n")
    found = analyse(run)
    assert [line.split(",")[0] for line in found.differences] == ["spans.jsonl"]
    again = found.write(tmp_path / "again")
    assert (again.path / "spans.jsonl").read_bytes() == found.files["spans.jsonl"]


def test_files_of_a_job_do_not_outlive_it(run: RunFolder) -> None:
    """A folder that a job's run has left, raw records and all, is taken for the next run; nothing of it stays."""
    (run.path / "spans-0.bin").touch()
    (run.path / "messages-0.bin").touch()
    (run.path / "retries-0.bin").touch()
    (run.path / "stamps-0.bin").touch()
    assert list(create(run.path).path.iterdir()) == []


def test_streams_leave_no_file_of_a_job(run: RunFolder) -> None:
    metrics, _ = judge_measured(_measured())
    run.write_metrics(replace(metrics, job=None))
    assert {"iterations.jsonl", "spans.jsonl", "counters.json"}.isdisjoint(path.name for path in run.path.iterdir())
    assert "job" not in json.loads((run.path / "metrics.json").read_text())


Harm = Callable[[RunFolder], None]


def _facts(change: Callable[[dict], object]) -> Harm:  # type: ignore[type-arg]  # plain JSON
    def edit(run: RunFolder) -> None:
        path = run.path / FOLDER / "facts.json"
        facts = json.loads(path.read_text())
        change(facts)
        path.write_text(json.dumps(facts))

    return edit


def _job(**changed: object) -> Harm:
    return _facts(lambda facts: facts["facts"]["job"].update(changed))


def _records(name: str, field: str, value: int) -> Harm:
    def edit(run: RunFolder) -> None:
        measured = kept(run).measured
        assert measured.job is not None
        array = getattr(measured.job, name).copy()
        array[field][0] = value
        keep(run.path, replace(measured, job=replace(measured.job, **{name: array})))

    return edit


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_facts(lambda facts: facts["counts"].pop("spans")), "no count of spans"),
        (_facts(lambda facts: facts["facts"].pop("job")), "it holds 6 arrays"),
        (_job(spans={}), "no ranks"),
        (_job(spans={"0": []}), "no ranks, or one without a span"),
        (_job(spans={"-1": [{"label": "x", "kind": "x", "size_bytes": 0, "ranks": 0}]}), "no ranks"),
        (_job(spans={"0": [{"label": "x", "kind": "x", "size_bytes": -1, "ranks": 0}]}), "a size that is none"),
        (_job(packets=-1), "what nobody can count"),
        (_job(counters={"n": {"c": 2**63}}), "what nobody can count"),
        (_job(tick_ns=0), "what nobody can count"),
        (_job(deaths=[{"at_ns": -1, "queue_pair": "a>b#0"}]), "died at a time"),
        (_job(deaths=[{"at_ns": 1, "queue_pair": "a>b#0", "restarted_at_ns": 2**62}]), "died at a time"),
        (_job(checkpoint_every=-1), "checkpoints or samples"),
        (_job(samples=2**62), "checkpoints or samples"),
        (_records("spans", "span", 2), "spans that its program has not"),
        (_records("spans", "end_ns", 0), "spans have times"),
        (_records("messages", "completed_ns", 2**62), "messages have times"),
        (_records("messages", "flow", 7), "messages are of unknown flows"),
        (_records("retries", "at_ns", -1), "retries have times"),
        (_records("retries", "flow", 7), "retries are of unknown flows"),
        (_records("stamps", "flow", 7), "stamps are of unknown flows"),
        (_records("messages", "bytes", 2**32), "a size that none can have"),
        (_records("messages", "bytes", 0), "a size that none can have"),
    ],
)
def test_records_of_somebody_else_are_refused_in_one_line(run: RunFolder, harm: Harm, words: str) -> None:
    harm(run)
    with pytest.raises(InputError, match=words) as caught:
        analyse(run)
    assert "\n" not in str(caught.value)


def test_an_iteration_of_any_number_takes_no_memory_of_that_size(run: RunFolder) -> None:
    _records("spans", "iteration", 2**32 - 1)(run)
    found = analyse(run).metrics.job
    assert found is not None
    assert len(found.iterations) == 79


def test_a_run_s_counters_and_collectives_are_shown(tmp_path: Path) -> None:
    folder, hpn = str(judged_run(tmp_path / "run", _measured()).path), Hpn(tmp_path)
    assert hpn.json("inspect", "counters", folder) == [{"nic": "p0.s0.h0.r0", "packet_seq_err": 3}]
    assert "packet_seq_err" in hpn.run("inspect", "counters", folder)
    (row,) = json.loads(hpn.run("inspect", "collectives", folder, "--json"))
    assert (row["size_bytes"], row["time_us"], row["wrong"]) == (1_000_000, pytest.approx(99_000), 0)
    said = hpn.run("inspect", "collectives", folder)
    assert "     1000000        125000    uint64     sum      -1    99000  0.0101  0.0101       0" in said


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("counters",), "name its run folder"),
        (("collectives", "nowhere"), "is not a run folder"),
        (("nodes", "run"), "of a run folder there are counters, collectives and run"),
    ],
)
def test_what_cannot_be_inspected_is_told(tmp_path: Path, asked: tuple[str, ...], words: str) -> None:
    assert words in Hpn(tmp_path).run("inspect", *asked, code=2)
