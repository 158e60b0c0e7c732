"""In virtual time repeats are samples: each draws the injection's phase from its number, and can be made again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hpn.results.run import folder
from hpn.results.run.folder import RunFolder
from hpn.testbed.errors import MachineError
from hpn.testbed.events import EventKind
from hpn.testbed.vm.uml import Uml

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]

_CLI = Path(__file__).parents[2] / "cli.py"
_DRILL = """
drill: short
summary: one link is cut and repaired
topology: {segments: 2, hosts: 1, rails: 1, aggs: 1, scale: 100000}
workload: {pattern: permutation, queue_pairs: 2, load: 40 %}
profile: quick
timeline:
  healthy: 600 ms
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 600 ms, for: 800 ms}
  settle: 1200 ms
expect:
  - queue_pair_deaths: {at_most: 0}
"""


def _facts(run: RunFolder) -> dict[str, bytes]:
    files = (
        path for path in run.path.rglob("*") if path.is_file() and path.name not in {"manifest.json", "report.html"}
    )
    return {str(path.relative_to(run.path)): path.read_bytes() for path in files}


def _healthy_ms(run: RunFolder) -> float:
    """From the word that traffic runs to the cut."""
    events = run.events()
    begun = next(e.at_ns for e in events if e.kind is EventKind.PHASE and e.what == "healthy")
    return (next(e.at_ns for e in events if e.kind is EventKind.FAULT) - begun) / 1e6


def test_a_repeat_has_a_phase_of_its_own_and_is_made_again_to_the_last_digit(tmp_path: Path) -> None:
    try:
        Uml(virtual_time=True).check()
    except MachineError as error:
        pytest.skip(str(error))
    (tmp_path / "short.yaml").write_text(_DRILL)

    def run(out: str, *options: str) -> None:
        command = (sys.executable, str(_CLI), "drill", "run", str(tmp_path / "short.yaml"), "--engine", "uml")
        done = subprocess.run(
            [*command, "--virtual-time", "--out", str(tmp_path / out), *options], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    run("series", "--repeat", "2")
    run("alone", "--phase", "2")
    first, second = (folder.load(tmp_path / "series" / f"short-{n}") for n in (1, 2))
    again = folder.load(tmp_path / "alone" / "short")
    assert _facts(second) == _facts(again)
    assert (first.manifest().phase, first.manifest().phase_ms, first.manifest().seeds["fabric"]) == (1, 0.0, 1)
    assert again.manifest().phase == second.manifest().phase == 2
    assert again.manifest().phase_ms == second.manifest().phase_ms == pytest.approx(2110.555, abs=0.001)
    assert again.manifest().seeds == second.manifest().seeds != first.manifest().seeds
    assert _healthy_ms(second) - _healthy_ms(first) == pytest.approx(2110.555, abs=2)
