"""A guest whose clock stands is ended after the time that ``--stall-limit`` gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

_CLI = Path(__file__).parents[2] / "cli.py"


@pytest.mark.guest
def test_a_guest_is_ended_after_the_time_that_the_option_gives() -> None:
    command = [sys.executable, str(_CLI), "vm", "shell", "--engine", "uml", "--virtual-time", "--stall-limit", "4"]
    spin = ["--", "sh", "-c", "sleep 2; while :; do :; done"]
    done = subprocess.run([*command, *spin], capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == 3, done.stderr
    if "kernel" in done.stderr and "silent" not in done.stderr:
        pytest.skip(done.stderr.splitlines()[0])
    silent = re.search(r"has been silent for (\d+) s", done.stderr)
    assert silent is not None, done.stderr
    assert int(silent[1]) >= 4, "more where whoever looks gets no CPU"
