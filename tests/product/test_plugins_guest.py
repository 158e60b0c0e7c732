"""Plug-ins go along into guests."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.product.hpn import skip_without_virtual_time
from tests.product.test_plugins import DRILL, OWN, hpn

pytestmark = pytest.mark.guest


def run(drill: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """The drill in virtual time, with the plug-ins of the examples."""
    skip_without_virtual_time()
    options = ("--engine", "uml", "--virtual-time", "--out", str(out))
    return hpn("--plugin", str(OWN), "drill", "run", str(drill), *options, COLUMNS="200")


def test_a_drill_of_plug_ins_runs_in_virtual_time(tmp_path: Path) -> None:
    ran = run(DRILL, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "PASS  dim on rack" in ran.stdout
    assert "worst send gap of hit flows below 20 ms" in ran.stdout


def test_the_lag_datapath_of_a_plug_in_carries_the_traffic_and_moves_it_when_carrier_goes(tmp_path: Path) -> None:
    ran = run(OWN / "sticky.yaml", tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "PASS  sticky on tiny (sticky datapath, uml-virtual-time engine" in ran.stdout
    assert json.loads((tmp_path / "sticky" / "manifest.json").read_text())["datapath"] == "sticky"
    events = [json.loads(line) for line in (tmp_path / "sticky" / "events.jsonl").read_text().splitlines()]
    told = [
        e["detail"]["ports"] for e in events if (e["kind"], e["node"], e["subject"]) == ("lag", "p0.s0.h0", "bond0")
    ]
    assert told[-2:] == ["r0p1", "r0p0,r0p1"]
