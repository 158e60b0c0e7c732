"""A finding of docs/findings.md is there: its drill fails in the one check that tells of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.judge.verdict import Outcome
from hpn.results.run import folder
from tests.product.hpn import ROOT, Hpn, skip_without_virtual_time

NAME = "bird-error-wait"
pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.timeout(600)]


def test_bird_leaves_a_repaired_link_idle_for_a_minute(tmp_path: Path) -> None:
    skip_without_virtual_time()
    drill = str(ROOT / f"examples/findings/{NAME}.yaml")
    Hpn(tmp_path).run("drill", "run", drill, "--engine", "uml-virtual-time", "--out", "out", code=1)
    checks = folder.load(tmp_path / "out" / NAME).verdict().checks
    assert [each.text for each in checks if each.outcome is Outcome.FAIL] == ["converged at repair below 10 s"]
