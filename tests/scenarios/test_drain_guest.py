"""What is located while streams run is drained in virtual time, loses nothing more, and is put back at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run import folder
from hpn.testbed.events import EventKind
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]

DRILL = """\
drill: drained
summary: what loses packets is located and drained
topology: tiny
workload: {{pattern: probes, queue_pairs: 4, load: 1 %, path_mtu: 256, source_ports: covering}}
locate: {{act: drain, hold: 300 ms}}
timeline:
  healthy: 1 s
  faults:
    - {{id: hole, fault: one-way-loss, target: {target}, direction: up, at: 1 s, for: 3 s, share: 20 %}}
  settle: 1 s
expect:
  - drained: {{at_most: 2 s}}
  - wrong_drains: {{at_most: 0}}
  - state_restored: yes
"""


@pytest.mark.parametrize("target", ["p0.s0.t0.0-p0.a0.1", "p0.s0.h0.r0.0"], ids=["BGP", "LACP"])
def test_a_lossy_link_is_drained_without_loss_and_returns(tmp_path: Path, target: str) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    (tmp_path / "drained.yaml").write_text(DRILL.format(target=target))
    hpn.run("drill", "run", "drained.yaml", "--engine", "uml-virtual-time", "--keep-records", "--out", "out")
    run = folder.load(tmp_path / "out" / "drained")
    location = run.metrics().location
    assert location is not None
    (drained,) = location.drains
    assert (drained.link, drained.fault) == (target, "hole")
    assert drained.if_left is not None
    assert drained.lost * 10 < drained.if_left
    told = [event.what for event in run.events() if event.kind is EventKind.LOCATE]
    assert told[:2] == ["accused", "drained"]
    assert told[-1] == "returned"
    hpn.run("analyse", str(run.path))
    assert folder.load(run.path).metrics().location == location
