"""A drill begins when its lab is at rest. While the lab starts, path control steers around what is not there yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run.folder import load
from hpn.testbed.events import EventKind
from tests.product.hpn import Hpn, skip_without_virtual_time

DRILL = """
drill: at-rest
summary: a ToR crashes where LAGs steer and ToRs gather their news for a second
topology:
  {segments: 2, hosts: 2, rails: 1, aggs: 6, seed: 8230, scale: 1000, lag: kernel, lacp: {mux: independent},
   path_control: {policy: POLICY, gather_ms: 1000}}
workload: {pattern: pairs, queue_pairs: 1, load: 40 %, across_segments: false}
timeline:
  healthy: 1 s
  faults: [{id: it, fault: tor-crash, target: p0.s1.t0.0, at: 1 s, for: 1 s}]
  settle: 4 s
expect:
  - state_restored: true
"""


@pytest.mark.guest
@pytest.mark.timeout(300)
@pytest.mark.parametrize("policy", ["steer-destinations", "both"])
def test_a_drill_begins_when_nothing_is_steered_any_more(tmp_path: Path, policy: str) -> None:
    skip_without_virtual_time()
    (tmp_path / "drill.yaml").write_text(DRILL.replace("POLICY", policy))
    said = Hpn(tmp_path).run("drill", "run", "drill.yaml", "--engine", "uml", "--virtual-time", "--out", "out")
    assert "PASS  at-rest" in said
    events = load(tmp_path / "out" / "at-rest").events()
    converged_ns = next(e.at_ns for e in events if e.kind is EventKind.PHASE and e.what == "converged")
    failed_ns = next(e.at_ns for e in events if e.kind is EventKind.FAULT)
    steering = [e for e in events if e.kind is EventKind.PATH and e.what in ("steered", "released")]
    assert any(e.what == "steered" and e.at_ns < converged_ns for e in steering), "what it is good for"
    assert [e for e in steering if converged_ns < e.at_ns < failed_ns] == []
