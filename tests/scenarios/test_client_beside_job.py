"""A client beside a job: whose iterations are meant, files for each, and what is said of damaged ones."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.client import RankLog
from hpn.results.judge.verdict import Outcome
from hpn.results.run.folder import RunFolder, create, load
from hpn.results.text.terminal import summary
from hpn.scenarios.drill.describe import describe
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import queue_pairs_of
from hpn.scenarios.run.analyse import analyse
from hpn.scenarios.run.judgement import judge_measured
from hpn.scenarios.run.measurement import Measurement
from hpn.scenarios.run.stored_records import kept
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import parse
from tests.results.sample import MANIFEST
from tests.results.shown import as_text
from tests.scenarios.client_runs import client_beside_job
from tests.scenarios.run_folders import judged_run

LOGS = {0: b"+0.000001 hpn ready\n+1.000000 hpn step 0\n", 1: b"+0.000002 bye\n"}

BESIDE = """
drill: both
summary: a link is cut while a program runs beside a job
topology: tiny
job: {collective: {kind: all-reduce, size: 1 MB}}
workload: {client: {run: command, command: [a]}}
expect:
  - iteration_time: {below: 95 ms, whose: client}
  - iteration_time: {below: 95 ms, whose: job}
  - wrong_results: {at_most: 0, whose: job}
  - job_survives: {is: yes, whose: client}
  - job_survives: {is: yes, whose: job}
"""


def beside() -> Drill:
    return drill_from(parse(BESIDE, "d.yaml"), Path())


def _both(misread: int = 0) -> Measurement:
    return client_beside_job(beside().expectations, misread)


def test_a_client_beside_a_job_is_read_and_described() -> None:
    both = beside()
    assert both.client is not None
    assert both.job is not None
    assert not both.streams
    assert (
        len(queue_pairs_of(both, build(both.topology)))
        == len(queue_pairs_of(replace(both, client=None), build(both.topology)))
        > 0
    )
    said = "\n".join(describe(both))
    assert "a job of 8 GPUs" in said
    assert "client command (any program" in said


def test_an_expectation_is_held_against_whose_it_says() -> None:
    _, verdict = judge_measured(_both())
    assert [(check.text, check.outcome, check.measured) for check in verdict.checks] == [
        ("iteration time of the client below 95 ms", Outcome.FAIL, pytest.approx(98.999)),  # and no more, as it died
        ("iteration time of the job below 95 ms", Outcome.PASS, 50.0),
        ("wrong results of the job at most 0", Outcome.PASS, 0),
        ("client survives", Outcome.FAIL, None),
        ("job survives", Outcome.PASS, None),
        ("wrong results of the client at most 0", Outcome.FAIL, 1),  # which nobody asked for
    ]


def test_doubts_of_a_client_beside_a_job_are_the_runs() -> None:
    _, verdict = judge_measured(_both(misread=3))
    assert "3 lines of the client were to be steps and are none, first 'step x'" in verdict.reasons


def test_a_client_beside_a_job_has_files_of_its_own_which_come_again_from_the_records(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", _both())
    found = analyse(run)
    assert found.differences == ()
    lengths = {
        name: len((run.path / name).read_text().splitlines()) for name in found.files if name.endswith("s.jsonl")
    }
    assert (lengths["iterations.jsonl"], lengths["client-iterations.jsonl"]) == (160, 80)
    assert (lengths["spans.jsonl"], lengths["client-spans.jsonl"]) == (320, 320)
    (run.path / "clients").mkdir()
    (run.path / "clients" / "rank-0.log").touch()
    assert list(create(run.path).path.iterdir()) == []


def test_records_of_a_client_beside_a_job_that_no_run_can_have_are_refused(tmp_path: Path) -> None:
    swapped = _both()
    facts = replace(swapped.facts, job=swapped.facts.beside, beside=swapped.facts.job)
    with pytest.raises(InputError, match="a client ran beside a job that is none"):
        kept(judged_run(tmp_path / "run", replace(swapped, facts=facts, job=swapped.beside, beside=swapped.job)))


def test_steps_of_a_client_that_tells_none_are_damage(tmp_path: Path) -> None:
    both = _both()
    assert both.facts.beside is not None
    facts = replace(both.facts, beside=replace(both.facts.beside, spans={}))
    with pytest.raises(InputError, match="ranks that tell no steps have some"):
        kept(judged_run(tmp_path / "run", replace(both, facts=facts)))


def test_the_terminal_shows_a_job_and_the_client_beside_it() -> None:
    metrics, verdict = judge_measured(_both())
    said = as_text(summary(MANIFEST, metrics, verdict), 160)
    assert "iterations of all ranks of the client" in said
    assert "job: 2 ranks, 2 queue pairs, 160 iterations, one every 50 ms" in said
    assert "client command: 2 ranks, 2 of which tell steps, 80 steps done by all of these, one every 100 ms" in said


def _with_logs(measured: Measurement) -> Measurement:
    """As if the client's processes had printed ``LOGS``."""
    beside = measured.facts.beside
    assert beside is not None
    assert beside.client is not None
    logs = tuple(RankLog(rank, len(content), zlib.crc32(content)) for rank, content in LOGS.items())
    told = replace(beside, client=replace(beside.client, logs=logs))
    return replace(measured, facts=replace(measured.facts, beside=told))


def _all_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _harms(content: bytes) -> Iterator[bytes | None]:
    """Nothing at all, an empty file, parts of it, and as much of something else."""
    yield None
    yield from (content[: len(content) * part // 8] for part in range(8))
    yield random.Random(len(content)).randbytes(len(content))


def _said_of(run: RunFolder) -> list[str]:
    """What ``hpn analyse`` and whoever reads the metrics would say, line by line."""
    try:
        found = analyse(run)
        load(run.path).metrics()
    except (InputError, MachineError) as error:
        return [str(error)]
    return [*found.differences, *found.gaps]


def test_each_file_of_a_run_with_a_client_that_is_cut_or_gone_is_named(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", _with_logs(_both()))
    (run.path / "clients").mkdir()
    for rank, content in LOGS.items():
        (run.path / "clients" / f"rank-{rank}.log").write_bytes(content)
    before = _said_of(run)
    assert all("No such file" in line for line in before), "parts that no lab was there to tell of"
    unread = {"verdict.json", "manifest.json"}  # read, but for the one that says that this is a run folder
    for name in set(_all_files(run.path)) - unread:
        whole = (run.path / name).read_bytes()
        for harm in _harms(whole) if whole else ():
            (run.path / name).unlink() if harm is None else (run.path / name).write_bytes(harm)
            new = [line for line in _said_of(run) if line not in before]
            assert any(Path(name).name in line for line in new), f"{name}: {harm!r}"
        (run.path / name).write_bytes(whole)
    assert _said_of(run) == before
