"""Exit code 1 says that the network failed: a mistake of ours, or words that a terminal cannot show, never say it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hpn.testbed.errors import MachineError

from .hpn import ROOT

DRILL = """
drill: odd
summary: plane 0 \u2192 plane 1
topology: tiny
timeline:
  faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 2 s}]
expect:
  - worst_outage: {below: 50 ms}
"""


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | environment
    )


def test_a_mistake_of_our_own_is_not_a_fail() -> None:
    """An exception that nobody expected, as a user meets it."""
    planted = (
        "import sys; from hpn import cli; from hpn.scenarios.drill import catalogue; catalogue.ls = lambda: [][0]; "
        "sys.argv = ['hpn', 'drill', 'ls']; cli.main()"
    )
    found = run("-c", planted)
    assert found.returncode == MachineError.exit_code
    assert "IndexError" in found.stderr, "the traceback, for the report"
    assert "hpn: this is a mistake of hpn itself" in found.stderr


def test_a_terminal_that_cannot_show_a_name_shows_it_escaped(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(DRILL, encoding="utf-8")
    found = run("cli.py", "drill", "show", str(file), PYTHONIOENCODING="latin-1", PYTHONDONTWRITEBYTECODE="1")
    assert found.returncode == 0, found.stderr
    assert "plane 0 \\u2192 plane 1" in found.stdout
