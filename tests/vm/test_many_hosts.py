"""Labs of many hosts in a guest: what its neighbour table, its descriptors or its messages could set limits to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.uml import Uml
from tests.busy import Waiting

pytestmark = [pytest.mark.guest, pytest.mark.timeout(600)]

_CLI = Path(__file__).parents[2] / "cli.py"
_TOPOLOGY = "preset: medium\nsegments: 12\nhosts: 22\naggs: 2\nlag: {lag}\n"
_MOST = "for each in /proc/[0-9]*; do ls $each/fd 2> /dev/null | wc -l; done | sort -n | tail -1"


def _said(script: str, folder: Path, *, virtual_time: bool) -> list[str]:
    """What a script that must succeed prints in a guest."""
    try:
        Uml(virtual_time=virtual_time).check()
    except MachineError as error:
        pytest.skip(str(error))
    options = ["--virtual-time"] if virtual_time else []
    command = [sys.executable, str(_CLI), "vm", "shell", "--engine", "uml", *options, "--", "sh", "-c", script]
    waiting = Waiting()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=500)
    if "this machine starves it" in done.stderr:
        pytest.skip(done.stderr.splitlines()[0])
    if "did not converge within" in done.stdout and not virtual_time:
        waiting.skip_if_starved("the lab did not converge in time")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("lag", ["nft", pytest.param("kernel", marks=pytest.mark.slow)])
def test_264_hosts_come_up_and_break_beyond_descriptor_1024(lag: str, tmp_path: Path) -> None:
    """On ``nft`` libnftables works with descriptors from 1,024 on. Some 30 and 20 s of CPU time."""
    (tmp_path / "big.yaml").write_text(_TOPOLOGY.format(lag=lag))
    port = "p0.s11.h21.r0.0"
    up = f"hpn up big.yaml && {_MOST} && hpn break {port} && hpn mend {port} && hpn down"
    said = _said(up, tmp_path, virtual_time=True)
    assert max(int(line) for line in said if line.isdecimal()) > 1024
    assert said[-1] == "lab medium is down"


@pytest.mark.slow
def test_132_hosts_come_up_in_real_time(tmp_path: Path) -> None:
    """There switches say more at once than we read, and the kernel drops messages; some 15 s of CPU time."""
    said = _said("hpn up medium && hpn down", tmp_path, virtual_time=False)
    assert "converged after" in said[0]
    assert said[-1] == "lab medium is down"
