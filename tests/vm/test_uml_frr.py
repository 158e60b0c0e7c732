"""A drill of the library with FRR in every switch, in virtual time: drained and brought back. All of them: make frr."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hpn.results.judge.verdict import Outcome
from hpn.results.run import folder
from hpn.testbed.errors import MachineError
from hpn.testbed.routing.daemons import DAEMONS
from hpn.testbed.vm.uml import Uml
from tests.product.frr_library import write

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]

_CLI = Path(__file__).parents[2] / "cli.py"


def test_it_passes_with_frr(tmp_path: Path) -> None:
    name = "tor-drain"
    missing = DAEMONS["frr"].missing()
    if missing is not None:
        pytest.skip(missing)
    try:
        Uml(virtual_time=True).check()
    except MachineError as error:
        pytest.skip(str(error))
    command = (sys.executable, str(_CLI), "drill", "run", str(write(name, tmp_path)), "--engine", "uml")
    done = subprocess.run([*command, "--virtual-time", "--out", str(tmp_path / "out")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    run = folder.load(tmp_path / "out" / name)
    assert {check.outcome for check in run.verdict().checks} == {Outcome.PASS}
    versions = json.loads((tmp_path / "out" / name / "manifest.json").read_text())["versions"]
    assert versions["frr"] == DAEMONS["frr"].version()
    assert "bird" not in versions
