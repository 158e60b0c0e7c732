"""264 hosts in a guest: more than the host's one neighbour table holds, and more descriptors than select() can take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.errors import MachineError
from testbed.vm.uml import Uml

_CLI = Path(__file__).parents[2] / "cli.py"
_TOPOLOGY = "preset: medium\nsegments: 12\nhosts: 22\naggs: 2\nlag: nft\n"
_RAISE = "sysctl -qw net.ipv4.neigh.default.gc_thresh2=1584 net.ipv4.neigh.default.gc_thresh3=3168"  # as hpn up says
_MOST = "for each in /proc/[0-9]*; do ls $each/fd 2> /dev/null | wc -l; done | sort -n | tail -1"


@pytest.mark.guest
@pytest.mark.timeout(600)
def test_264_hosts_come_up_and_break_beyond_descriptor_1024(tmp_path: Path) -> None:
    """On ``nft``, so that libnftables works with descriptors from 1,024 on; some 30 s of CPU time."""
    try:
        Uml(virtual_time=True).check()
    except MachineError as error:
        pytest.skip(str(error))
    (tmp_path / "big.yaml").write_text(_TOPOLOGY)
    port = "p0.s11.h21.r0.0"
    script = f"{_RAISE} && hpn up big.yaml && {_MOST} && hpn break {port} && hpn mend {port} && hpn down"
    command = [sys.executable, str(_CLI), "vm", "shell", "--engine", "uml", "--virtual-time", "--", "sh", "-c", script]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False, timeout=500
    )
    if "this machine starves it" in done.stderr:
        pytest.skip(done.stderr.splitlines()[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert max(int(line) for line in done.stdout.splitlines() if line.isdecimal()) > 1024
    assert "lab medium is down" in done.stdout
