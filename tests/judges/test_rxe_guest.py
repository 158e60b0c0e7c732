"""Boots the virtual-time kernel for ``test_rxe``: our transport against Soft-RoCE, where that kernel has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import kernel_cache
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml
from tests.judges.rxe import PYTHON
from tests.judges.test_rxe import IN_A_GUEST

pytestmark = [pytest.mark.guest, pytest.mark.extra, pytest.mark.timeout(400)]
_ROOT = Path(__file__).parents[2]
_FILE = "tests/judges/test_rxe.py"


def test_our_transport_works_with_a_queue_pair_of_soft_roce() -> None:
    if subprocess.run((PYTHON, "-c", "import pyverbs.qp"), check=False, capture_output=True).returncode != 0:
        pytest.skip("pyverbs is missing: apt install python3-pyverbs ibverbs-providers")
    engine = Uml(virtual_time=True)
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    kernel = kernel_cache.newest()
    if kernel is None or "CONFIG_RDMA_RXE=y" not in kernel.program.with_name("config").read_text().splitlines():
        pytest.skip("the kernel of virtual time has no rdma_rxe")
    command = (sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-rs", "-q", _FILE)
    environment = {"PYTHONHASHSEED": "0", IN_A_GUEST: "1"}
    lines: list[str] = []
    result = engine.run(GuestJob(command, _ROOT, (), environment, 1024, 1, 300.0), lines.append)
    said = "\n".join(lines)
    assert result.exit_code == 0, said
    assert "skipped" not in said, said
