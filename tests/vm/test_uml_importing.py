"""An imported containerlab network runs a drill in virtual time, under the names of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run import folder
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]
_LAB = """
name: imported
topology:
  kinds:
    sonic-vs: {image: docker-sonic-vs}
    linux: {image: alpine}
  nodes:
    leaf1: {kind: sonic-vs, group: leaf}
    leaf2: {kind: sonic-vs, group: leaf}
    spine1: {kind: sonic-vs, group: spine}
    gpu1: {kind: linux}
    gpu2: {kind: linux}
    grafana: {kind: linux}
  links:
    - endpoints: ["leaf1:eth1", "spine1:Ethernet1/1"]
      ipv4: [10.200.0.1/30, 10.200.0.2/30]
    - endpoints: ["leaf2:eth1", "spine1:Ethernet1/2"]
    - endpoints: ["gpu1:eth1", "leaf1:eth2"]
    - endpoints: ["gpu1:eth2", "leaf2:eth2"]
    - type: veth
      endpoints: [{node: gpu2, interface: eth1}, {node: leaf1, interface: eth3}]
    - endpoints: ["gpu2:eth2", "leaf2:eth3"]
"""
_DRILL = """
drill: cut
summary: gpu1 loses the cable to leaf1
topology: topology.yaml
timeline:
  healthy: 2 s
  faults:
    - {id: access, fault: link-down, target: "gpu1:eth1", at: 2 s, for: 2 s}
  settle: 3 s
expect:
  - worst_outage: {flows: hit, below: 100 ms}
  - state_restored: yes
"""


def test_an_imported_network_fails_over_and_keeps_its_names(tmp_path: Path) -> None:
    skip_without_virtual_time()
    (tmp_path / "lab.clab.yml").write_text(_LAB)
    (tmp_path / "cut.yaml").write_text(_DRILL)
    hpn = Hpn(tmp_path)
    hpn.run("topology", "import", "lab.clab.yml", "--nic", "eth1+eth2")
    hpn.run("drill", "run", "./cut.yaml", "--engine", "uml-virtual-time", "--out", "out")
    run = folder.load(tmp_path / "out" / "cut")
    assert {flow.src_nic for flow in run.metrics().flows} == {"gpu1.r0", "gpu2.r0"}
    assert {event.subject for event in run.events() if event.node == "spine1"} >= {"Ethernet1-1", "Ethernet1-2"}
