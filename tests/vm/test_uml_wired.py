"""Networks as data in virtual time: HPN from its own file measures the same bytes, and names stay the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run import folder
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]
_ABOUT_NAMES = {"manifest.json", "report.html", "fabric.json", "drill.json"}
"""Files that say which topology it was; all others hold what was measured."""

_MINE = """
name: mine
architecture: wired
bgp: {asn: per-switch}
wiring:
  nodes:
    gpu-a: {role: host, nics: {bond0: {ports: [eth0, eth1]}}}
    gpu-b: {role: host, nics: {bond0: {ports: [eth0, eth1]}}}
    leaf1: {role: leaf, asn: 65001}
    leaf2: {role: leaf, asn: 65002}
    leaf3: {role: leaf, asn: 65003}
    spine_1: {role: spine, asn: 65100}
    spine_2: {role: spine, asn: 65100}
  links:
    - {ends: [gpu-a:eth0, leaf1:Ethernet0]}
    - {ends: [gpu-a:eth1, leaf2:Ethernet0]}
    - {ends: [gpu-b:eth0, leaf2:Ethernet4]}
    - {ends: [gpu-b:eth1, leaf3:Ethernet0]}
    - {ends: [leaf1:Ethernet48, spine_1:swp1]}
    - {ends: [leaf2:Ethernet48, spine_1:swp2]}
    - {ends: [leaf3:Ethernet48, spine_1:swp3]}
    - {ends: [leaf1:Ethernet52, spine_2:e-1.0]}
    - {ends: [leaf2:Ethernet52, spine_2:e-1.1_b]}
    - {ends: [leaf3:Ethernet52, spine_2:e-1.2]}
"""
_DRILL = """
drill: cut
summary: leaf1 loses an uplink, then its host port
topology: mine.yaml
timeline:
  healthy: 2 s
  faults:
    - {id: uplink, fault: link-down, target: "leaf1:Ethernet48", at: 2 s, for: 1 s}
    - {id: session, fault: bgp-reset, target: "leaf3:Ethernet52", at: 5 s}
    - {id: access, fault: link-down, target: "leaf1:Ethernet0", at: 7 s, for: 3 s}
  settle: 4 s
expect:
  - worst_outage: {flows: hit, below: 100 ms}
  - state_restored: yes
"""


def test_hpn_from_its_own_file_measures_the_same_bytes(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    hpn.run("topology", "export", "tiny", "--out", "tiny.yaml")
    for out, topology in (("first", "tiny"), ("second", "./tiny.yaml")):
        hpn.run("drill", "run", "tor-crash", "--topology", topology, "--engine", "uml-virtual-time", "--out", out)
    first, second = (tmp_path / out / "tor-crash" for out in ("first", "second"))
    names = {path.name for run in (first, second) for path in run.iterdir() if path.is_file()}
    assert "events.jsonl" in names
    for name in sorted(names - _ABOUT_NAMES):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_a_network_keeps_its_names_and_recovers(tmp_path: Path) -> None:
    skip_without_virtual_time()
    (tmp_path / "mine.yaml").write_text(_MINE)
    (tmp_path / "cut.yaml").write_text(_DRILL)
    Hpn(tmp_path).run("drill", "run", "./cut.yaml", "--engine", "uml-virtual-time", "--out", "out")
    run = folder.load(tmp_path / "out" / "cut")
    assert {flow.src_nic for flow in run.metrics().flows} == {"gpu-a.r0", "gpu-b.r0"}
    assert {event.subject for event in run.events() if event.node == "spine_2"} >= {"e-1.0", "e-1.1_b", "e-1.2"}
