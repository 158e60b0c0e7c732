"""A drill of the library on one's own fabric, run in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run.folder import load
from tests.product.hpn import Hpn, skip_without_virtual_time


@pytest.mark.guest
@pytest.mark.timeout(300)
def test_a_shipped_drill_runs_on_ones_own_fabric_in_virtual_time(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    (tmp_path / "mine.yaml").write_text("{segments: 2, hosts: 2, rails: 1, aggs: 1, scale: 4000, lag: nft}\n")
    options = ("--topology", "mine.yaml", "--engine", "uml", "--virtual-time", "--out", "out")
    said = hpn.run("drill", "run", "link-down", *options)
    assert "link-down on mine (nft datapath" in said
    assert "run on mine (hpn), not on its own fabric" in said
    made = load(tmp_path / "out" / "link-down")
    assert made.fabric().spec.name == "mine"
    assert any("untouched.rails is 1, but this fabric has only rail 0" in line for line in made.drill().other_fabric)
