"""The model of a long job says how long it takes before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hpn.cli import command_line
from hpn.scenarios.drill import catalogue, planned
from hpn.scenarios.drill.job import JobSpec, plan_of
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.model import answer
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.jobengine.plan import JobPlan

LONG = """drill: long
summary: x
topology: tiny
job: {collective: {kind: all-reduce, algorithm: ring, size: 4 MB, slices: 8}, gpus: 1}
timeline:
  healthy: 2 s
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 2 s, for: 2 s}
  settle: SETTLE
expect:
  - iterations_after: {at_least: 90 %, edge: repair}
"""


@pytest.mark.parametrize(("settle", "told"), [("3 s", False), ("400 s", True)])
def test_the_model_of_a_job_tells_its_time_before_it_starts(
    settle: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of a job ran for minutes, and nothing had said so."""

    def refuse(*_: object) -> None:
        raise InputError("it would start now")

    file = tmp_path / "long.yaml"
    file.write_text(LONG.replace("SETTLE", settle))
    monkeypatch.setattr(answer, "model", refuse)
    said = CliRunner().invoke(command_line, ["model", str(file)]).output
    assert ("the model of long takes up to about " in said) is told, said


def test_streams_and_what_the_model_refuses_have_no_estimate() -> None:
    assert answer.messages_of(PlannedRun(catalogue.load("link-down"))) == 0
    assert answer.messages_of(PlannedRun(catalogue.load("job-restarts"))) == 0
    assert 5_000 < answer.messages_of(PlannedRun(catalogue.load("link-down-allreduce"))) < 50_000


def test_the_estimate_and_the_model_share_one_layout_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[JobSpec] = []

    def count(job: JobSpec, fabric: Fabric) -> JobPlan:
        laid_out.append(job)
        return plan_of(job, fabric)

    monkeypatch.setattr(planned, "plan_of", count)
    said = CliRunner().invoke(command_line, ["model", "link-down-allreduce"])
    assert "modelled" in said.output
    assert len(laid_out) == 1
