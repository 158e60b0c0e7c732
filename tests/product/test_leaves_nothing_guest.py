"""After drills in guests that a signal ended in mid-run, machine and run folder are as they were."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.product.chaos import Strike
from tests.product.hpn import ROOT, Hpn, skip_without_virtual_time

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)

pytestmark = pytest.mark.guest


@pytest.mark.parametrize("number", _SIGNALS)
def test_a_guest_ended_by_a_signal_leaves_no_raw_records_and_no_folder(tmp_path: Path, number: signal.Signals) -> None:
    skip_without_virtual_time()
    assert Strike("guest", number, 0, begun=True).carry_out(Hpn(tmp_path)) == []


@pytest.mark.parametrize("number", _SIGNALS)
def test_a_pool_of_guests_ended_by_a_signal_leaves_no_folder(tmp_path: Path, number: signal.Signals) -> None:
    skip_without_virtual_time()
    assert Strike("pool", number, 0, begun=True).carry_out(Hpn(tmp_path)) == []


_KILLED_TOGETHER = """
import os, signal, subprocess, sys, time
from pathlib import Path
limit = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh2")
hpn = sys.executable, "cli.py"
limit.write_text("16")
subprocess.run([*hpn, "up", "tiny", "--raise-neighbour-limit"], check=True, stdout=subprocess.DEVNULL)
raised = limit.read_text().strip()
later = [each for each in Path("/proc").glob("[0-9]*") if int(each.name) > os.getpid()]
labs = [each for each in later if (each / "cmdline").read_bytes()]  # the kernel's own have none
for number in (signal.SIGSTOP, signal.SIGKILL):
    for each in labs:
        os.kill(int(each.name), number)
deadline = time.monotonic() + 60
while any(each.exists() and b") Z " not in (each / "stat").read_bytes() for each in labs):
    assert time.monotonic() < deadline
    time.sleep(0.01)
left = limit.read_text().strip()
subprocess.run([*hpn, "--version"], check=True, stdout=subprocess.DEVNULL)
print(raised, left, limit.read_text().strip())
"""


def test_the_next_command_puts_the_neighbour_limit_back_after_all_that_knew_of_it_were_killed() -> None:
    """In a guest: the limit is its kernel's own. Stopped first, so that no warden can act on another's death."""
    skip_without_virtual_time()
    guest = [sys.executable, str(ROOT / "cli.py"), "vm", "shell", "--engine", "uml", "--virtual-time", "--"]
    done = subprocess.run(
        [*guest, sys.executable, "-c", _KILLED_TOGETHER], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.split()[-3:] == ["48", "48", "16"], done.stdout + done.stderr
