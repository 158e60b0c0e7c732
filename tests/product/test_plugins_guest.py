"""Plug-ins go along into guests."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import MachineError
from testbed.vm.uml import Uml
from tests.product.test_plugins import DRILL, OWN, hpn


@pytest.mark.guest
def test_a_drill_of_plug_ins_runs_in_virtual_time(tmp_path: Path) -> None:
    try:
        Uml(virtual_time=True).check()
    except MachineError as error:
        pytest.skip(str(error))
    drill = ("drill", "run", str(DRILL), "--engine", "uml", "--virtual-time", "--out", str(tmp_path))
    ran = hpn("--plugin", str(OWN), *drill, COLUMNS="200")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "PASS  dim on rack" in ran.stdout
    assert "worst send gap of hit flows below 20 ms" in ran.stdout
