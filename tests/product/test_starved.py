"""A machine starved on purpose: what a drill then measures is never called a pass or a fail (DESIGN rule 8)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process import sandbox
from tests.busy import all_cores_busy
from tests.product.hpn import Hpn

INCONCLUSIVE = 4
DRILL = """
drill: hopeless
summary: an expectation that every run breaks
topology: tiny
timeline: {healthy: 4 s}
expect:
  - packets_lost: {at_least: 1000000000}
"""


def test_a_drill_on_aall_cores_busy_says_that_it_cannot_tell(tmp_path: Path) -> None:
    try:
        sandbox.spawn(lambda: 0).wait()
    except MachineError as error:
        pytest.skip(str(error))
    (tmp_path / "hopeless.yaml").write_text(DRILL)
    process = Hpn(tmp_path).start("drill", "run", "hopeless.yaml", "--out", "out")
    assert process.stdout is not None
    said = next((line for line in process.stdout if "healthy" in line), None)
    if said is None:
        pytest.fail(f"the drill did not get to its healthy phase: {process.communicate(timeout=60)}")
    with all_cores_busy():
        out, err = process.communicate(timeout=120)
    assert process.returncode == INCONCLUSIVE, f"{out}\n{err}"
    verdict = json.loads((tmp_path / "out/hopeless/verdict.json").read_text())
    assert verdict["outcome"] == "inconclusive"
    assert any(
        words in " ".join(verdict["reasons"]) for words in ("waited for a CPU", "machine was full", "stood still")
    )
    assert verdict["checks"][0]["outcome"] == "fail"
