"""HPCC over switches that report, beside DCQCN over the same switches with marks: what real queues hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run.folder import load
from hpn.scenarios.paper.measures import mean_queue_ms
from tests.product.hpn import Hpn, skip_without_virtual_time

_DRILL = """
drill: short-{name}
summary: three GPUs send to one over lossless switches
topology:
  preset: tiny
  switch:
    buffer: 2 MB
    classes:
      - {{priority: 3, dscp: [3], lossless: yes, weight: 15, alpha: 0.125{ecn}}}
job: {{messages: {{pattern: incast, size: 1 MB, count: 16}}, gpus: 1, congestion: {name}, stretch: 200, tick: 250 us,
  ib_timeout: 17}}
sample: {{queues: 10 ms}}
timeline: {{healthy: 3 s}}
expect:
  - buffer_drops: {{at_most: 0}}
  - headroom_drops: {{at_most: 0}}
"""


def _queue_and_stops(hpn: Hpn, at: Path, name: str, ecn: str = "") -> tuple[float, int]:
    """The mean queue of ports towards NICs, in ms, and the XOFF that switches sent."""
    (at / f"{name}.yaml").write_text(_DRILL.format(name=name, ecn=ecn))
    said = hpn.run("drill", "run", f"{name}.yaml", "--engine", "uml", "--virtual-time", "--out", "out")
    assert f"PASS  short-{name}" in said
    found = load(at / "out" / f"short-{name}").metrics()
    assert found.buffers is not None
    return mean_queue_ms(found), sum(each.xoff_sent for each in found.buffers if each.is_switch)


@pytest.mark.guest
@pytest.mark.timeout(600)
def test_hpcc_leaves_the_queue_next_to_empty_and_stops_nobody_where_dcqcn_does(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    queue_ms, stops = _queue_and_stops(hpn, tmp_path, "hpcc")
    marked_ms, more = _queue_and_stops(hpn, tmp_path, "dcqcn", ", ecn: {kmin: 60 KB, kmax: 240 KB, pmax: 0.8}")
    assert queue_ms < marked_ms / 10
    assert stops == 0 < more
