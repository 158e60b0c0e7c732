"""Buffers of switch ports in virtual time: the tests' own kernel has no discipline ``mmu``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "file",
    [
        pytest.param("tests/kernel/test_mmu.py", id="pfc, headroom, classes, marks, trimming and the watchdog"),
        pytest.param("tests/kernel/test_mmu_paths.py", id="telemetry, balancing, slow receivers"),
        pytest.param("tests/lab/test_stuck_ports.py", id="faults of a lab"),
    ],
)
def test_where_the_kernel_has_the_discipline_nothing_of_it_fails_or_skips(file: str) -> None:
    engine = Uml(virtual_time=True)
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    command = (sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-rs", file)
    lines: list[str] = []
    result = engine.run(GuestJob(command, ROOT, (), {"PYTHONHASHSEED": "0"}, 1024, 1, 300.0), lines.append)
    said = "\n".join(lines)
    assert result.exit_code == 0, said
    assert "skipped" not in said.replace("no tshark", ""), said
