"""What runs elsewhere is data: it comes out of a command line as it went in, and each kind is done by a function."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.commands.job import KINDS, kind_of
from hpn.scenarios.drill import catalogue
from hpn.scenarios.run.engines import RunBody, body_from
from hpn.scenarios.run.remote_task import RemoteTask, beside, job_from
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.engines import named

BODY = RunBody("/tmp/x.yaml", ("drill", "run", "x"), repeat=2, phase=3, slow=10, keep_records=True)


def test_a_job_is_the_last_word_of_its_command() -> None:
    job = RemoteTask("run", "uml", BODY.as_json(), parent=7)
    assert job_from(job.command[-1]) == job
    assert body_from(job_from(job.command[-1]).body) == BODY


def test_the_order_in_a_guest_is_that_of_the_user_on_the_engine_that_it_is_for() -> None:
    order = replace(BODY, file=str(catalogue.find("link-down"))).order(named("uml"))
    assert (order.engine, order.command, order.repeat, order.phase) == ("uml", BODY.command, 2, 3)
    assert (order.out, order.keep_records) == (Path(), True)
    assert order.drill == catalogue.load("link-down").slowed(10)
    seeded = replace(BODY, file=str(catalogue.find("link-down")), seed=5).order(named("uml"))
    assert seeded.drill == catalogue.load("link-down").seeded(5).slowed(10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_a_function(kind: str) -> None:
    assert callable(kind_of(RemoteTask(kind, "host")))


def test_an_unknown_kind_is_told() -> None:
    with pytest.raises(MachineError, match="no kind of job 'dance'"):
        kind_of(RemoteTask("dance", "host"))


def _said(job: RemoteTask, folder: Path) -> tuple[int, str]:
    with tempfile.TemporaryFile() as output:
        code = beside(job, output, folder).wait(60)
        output.seek(0)
        return code, output.read().decode()


def test_a_process_beside_us_runs_this_source_wherever_it_stands(tmp_path: Path) -> None:
    """A module of that folder is not taken for ours."""
    (tmp_path / "commands.py").write_text("raise SystemExit(77)\n")
    assert _said(RemoteTask("dance", "host"), tmp_path) == (
        3,
        "hpn: no kind of job 'dance'; it comes from another version of hpn\n",
    )


def test_a_job_does_not_outlive_the_process_that_it_is_for(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert _said(RemoteTask("dance", "host", parent=gone.pid), tmp_path) == (1, "")
