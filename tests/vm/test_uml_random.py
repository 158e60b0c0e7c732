"""Random numbers of a guest in virtual time begin again with each command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpn.testbed.package import ROOT
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml
from tests.product.hpn import skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]

_DRAWS = """
import os, sys, time
from hpn.testbed.vm import repeatable
time.sleep(int(sys.argv[1]))  # meanwhile the kernel takes new keys
os.urandom(100)
repeatable.begin()
print(os.urandom(32).hex())
"""


def test_what_a_guest_did_before_a_command_does_not_change_its_random_numbers(tmp_path: Path) -> None:
    skip_without_virtual_time()
    found = set()
    for waited_s in (0, 1, 5):
        begins = {"HPN_BEGIN_ON_WHOLE_SECOND": "1", "PYTHONPATH": str(ROOT)}
        job = GuestJob((sys.executable, "-c", _DRAWS, str(waited_s)), tmp_path, (tmp_path,), begins, 256, 1, 60.0)
        result = Uml(virtual_time=True, stall_s=30.0).run(job, lambda _line: None)
        assert result.exit_code == 0, "\n".join(result.console_tail)
        assert len(bytes.fromhex(result.last_line)) == 32
        found.add(result.last_line)
    assert len(found) == 1
