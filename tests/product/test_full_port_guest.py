"""Ports at up to 180 % of their rate: congestion takes data, and no protocol notices (virtual time)."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run.folder import load
from hpn.testbed.events import EventKind
from tests.product.hpn import Hpn, skip_without_virtual_time

_DRILL = """\
drill: full-ports
summary: nothing breaks but a link that nobody uses for long
topology:
  {segments: 2, hosts: 2, rails: 2, aggs: 4, seed: 1579, scale: 12000, lag: LAG, nic_port_rate: 400G, uplink_rate: 800G,
   bgp: {bfd: {interval_ms: 100, multiplier: 3}}}
workload: {pattern: permutation, queue_pairs: 4, load: 90 %, source_ports: hash}
timeline:
  healthy: 3 s
  faults: [{id: it, fault: link-down, target: p0.s0.h1.r0.1, at: 3 s, for: 2 s}]
  settle: 2 s
expect:
  - packets_lost: {at_most: 0, flows: others}
"""


@pytest.mark.guest
@pytest.mark.timeout(300)
@pytest.mark.parametrize("lag", ["nft", "kernel"])
def test_no_protocol_gives_up_in_a_full_port(lag: str, tmp_path: Path) -> None:
    skip_without_virtual_time()
    (tmp_path / "full.yaml").write_text(_DRILL.replace("LAG", lag))
    said = Hpn(tmp_path).run("drill", "run", "full.yaml", "--engine", "uml", "--virtual-time", "--out", "out", code=1)
    assert "is congestion" in said
    made = load(tmp_path / "out" / "full-ports")
    fault = next(event.at_ns for event in made.events() if event.kind is EventKind.FAULT)
    before = [event for event in made.events() if fault - 2_900_000_000 < event.at_ns < fault]
    assert [event for event in before if event.kind is not EventKind.QP] == [], "congestion was taken for a failure"
