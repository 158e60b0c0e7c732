"""The example of docs/api.md, as a script of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.product.hpn import skip_without_sandbox, skip_without_virtual_time

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "api" / "compare_two.py"


@pytest.mark.guest
def test_the_example_runs() -> None:
    skip_without_sandbox()
    skip_without_virtual_time()
    command = [sys.executable, str(EXAMPLE)]
    ran = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    first, lab, one, other = ran.stdout.splitlines()
    assert first == "tiny: 4 hosts, 8 ToRs, 4 Aggs"
    assert lab == "links up in a lab of it: {'access': 16, 'fabric': 16}"
    assert one.startswith("link-down: pass, longest outage at the cut ")
    assert float(one.split()[-2]) < 10 < 1000 < float(other.split()[-2]), "path control saves seconds"
