"""The team driver and teamd in the distribution's user-mode Linux: a foreign judge of our LACP."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import uml_kernel
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]


def test_teamd_aggregates_with_our_tors_and_refuses_one_of_another_set() -> None:
    try:
        kernel = uml_kernel.find(None, time_travel=False)
    except MachineError as error:
        pytest.skip(str(error))
    if "NET_TEAM" not in kernel.options:  # our own, where the distribution's cannot save this CPU's registers (AMX)
        pytest.skip(f"no team driver in {kernel.path}")
    if shutil.which("teamd") is None:
        pytest.skip("no teamd: apt install libteam-utils")
    command = (sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-rs", "tests/lag/test_teamd.py")
    lines: list[str] = []
    result = Uml().run(GuestJob(command, ROOT, (), {}, 512, 1, 200.0), lines.append)
    assert result.exit_code == 0, "\n".join(lines)
    assert any("2 passed" in line for line in lines), "\n".join(lines)
