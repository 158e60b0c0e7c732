"""What a drill records of buffers in virtual time, where the kernel has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpn.results.run.folder import load
from hpn.testbed.fabric.buffers import headroom_bytes
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.switch_spec import SwitchSpec
from tests.product.hpn import Hpn, skip_without_virtual_time

DRILL = """
drill: short-incast
summary: three GPUs send to one over lossless switches
topology: {preset: tiny, switch: {buffer: 2 MB}}
job: {messages: {pattern: incast, size: 1 MB, count: 16}, gpus: 1, congestion: line-rate, stretch: 200, ib_timeout: 17}
timeline: {healthy: 2 s}
expect:
  - buffer_drops: {at_most: 0}
  - headroom_drops: {at_most: 0}
  - pause_time: {at_least: 1 s, at_most: 1800 ms}
"""

LONGER = """
drill: long-cables
summary: cables of 1 km where 5 m were planned; XOFF takes 10 ms of emulated time
topology:
  preset: tiny
  switch:
    buffer: 8 MB
    cable_m: 1000
    classes: [{{priority: 3, dscp: [3], lossless: yes, weight: 15, alpha: 0.125{headroom}}}]
job:
  messages: {{pattern: incast, size: 1 MB, count: 16}}
  gpus: 1
  congestion: line-rate
  stretch: 200
  ib_timeout: 17
timeline: {{healthy: 2 s}}
expect:
  - headroom_drops: {{at_most: 0}}
"""
PLANNED = headroom_bytes(PRESETS["tiny"].spec, SwitchSpec(), 400_000_000)


@pytest.mark.guest
@pytest.mark.timeout(300)
@pytest.mark.parametrize("headroom", ["", f", headroom: {PLANNED}"], ids=["by formula", "of 5 m"])
def test_headroom_for_short_cables_drops_on_long_ones(headroom: str, tmp_path: Path) -> None:
    """An uplink of 400 Mbit/s brings 500 kB in the 10 ms, and 5 m make room for 36 kB."""
    skip_without_virtual_time()
    (tmp_path / "drill.yaml").write_text(LONGER.format(headroom=headroom))
    said = ("drill", "run", "drill.yaml", "--engine", "uml", "--virtual-time", "--out", "out")
    Hpn(tmp_path).run(*said, code=1 if headroom else 0)
    found = load(tmp_path / "out" / "long-cables").metrics().buffers
    assert found is not None
    most = max(each.headroom_max_bytes for each in found)
    assert (most <= PLANNED < 40_000) if headroom else (PLANNED < most <= PLANNED + 500_000)
    assert (sum(each.headroom_drops for each in found) > 0) == bool(headroom)


@pytest.mark.guest
@pytest.mark.timeout(300)
def test_a_run_says_who_stopped_whom_for_how_long_and_analyses_again_to_the_same(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    (tmp_path / "drill.yaml").write_text(DRILL)
    said = hpn.run("drill", "run", "drill.yaml", "--engine", "uml", "--virtual-time", "--out", "out", "--keep-records")
    assert "PASS  short-incast" in said
    hpn.run("drill", "run", "drill.yaml", "--engine", "uml-virtual-time", "--out", "again")
    for name in ("buffers.json", "metrics.json", "events.jsonl"):
        first, second = ((tmp_path / out / "short-incast" / name).read_bytes() for out in ("out", "again"))
        assert first == second, f"{name} of two equal runs"
    assert "buffers (ports that stopped others" in said
    run = load(tmp_path / "out" / "short-incast")
    stored = json.loads((run.path / "buffers.json").read_text())
    found = run.metrics().buffers
    assert found is not None
    assert [(each["port"], each["priority"], each["pausing_ns"]) for each in stored] == [
        (each.port, each.priority, each.pausing_ns) for each in found
    ]
    by_port = {each.port: each for each in found if each.priority == 3}
    for link in run.fabric().links:
        ends = by_port.get(link.upper.label), by_port.get(link.lower.label)
        for one, other in ((ends[0], ends[1]), (ends[1], ends[0])):
            if one is not None and one.xoff_sent:
                assert other is not None, "the far end heard what was sent"
                assert 0 <= one.xoff_sent - other.xoff_received <= 1, "one may be on its way"
                assert other.paused_ns == pytest.approx(one.pausing_ns, rel=0.02)
    again = hpn.run("analyse", "out/short-incast")
    assert "buffers.json" in again.split("equal to those of the run, byte for byte")[0].splitlines()[-1]
