"""A drill of the library in virtual time: no machine is too busy there, so it passes, every expectation of it.

On a host a drill may end inconclusive and its test be skipped; what nobody would notice there is noticed here. Ten
others run on fabrics drawn for each commit (tests/strangers), and all of them by: make phases.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hpn.results.judge.verdict import Outcome
from hpn.results.run import folder
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.uml import Uml

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]

_CLI = Path(__file__).parents[2] / "cli.py"


def test_it_passes_with_nothing_left_open(tmp_path: Path) -> None:
    try:
        Uml(virtual_time=True).check()
    except MachineError as error:
        pytest.skip(str(error))
    command = (sys.executable, str(_CLI), "drill", "run", "link-down", "--engine", "uml", "--virtual-time")
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    run = folder.load(tmp_path / "link-down")
    verdict, metrics = run.verdict(), run.metrics()
    assert {check.outcome for check in verdict.checks} == {Outcome.PASS}
    assert (verdict.reasons, metrics.inconclusive, metrics.unexplained) == ((), (), ())
    assert metrics.noise.lost == 0
    assert metrics.noise.noise_floor_ms < 0.01
    assert metrics.host is not None
    assert metrics.host.loop_lag_max_ms < 10
    for result in metrics.edges:
        assert result.flows_hit > 0, result.edge.label
        assert {at.plane for at in metrics.flows_at(result)} == {0, 1}, result.edge.label
