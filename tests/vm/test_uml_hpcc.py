"""HPCC over switches that report, beside DCQCN over the same switches with marks: what real queues hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run.folder import load
from hpn.traffic.congestion.hpcc import HpccParameters
from hpn.traffic.congestion.parameter_sets import HPCC_200G
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
timeline: {{healthy: 3 s}}
expect:
  - buffer_drops: {{at_most: 0}}
  - headroom_drops: {{at_most: 0}}
"""
_SENDERS, _PORT_BPS, _STRETCH, _TICK_NS, _FRAME = 3, 200e6, 200, 250_000, 4170


def _most(hpn: Hpn, at: Path, name: str, ecn: str = "") -> tuple[int, int]:
    """The longest queue of data at any switch port, in bytes, and the XOFF that switches sent."""
    (at / f"{name}.yaml").write_text(_DRILL.format(name=name, ecn=ecn))
    said = hpn.run("drill", "run", f"{name}.yaml", "--engine", "uml", "--virtual-time", "--out", "out")
    assert f"PASS  short-{name}" in said
    found = [each for each in load(at / "out" / f"short-{name}").metrics().buffers or () if each.is_switch]
    return max(each.queue_max_bytes for each in found if each.priority == 3), sum(each.xoff_sent for each in found)


@pytest.mark.guest
@pytest.mark.timeout(600)
def test_hpcc_holds_what_senders_send_in_one_base_round_trip_and_stops_nobody_where_dcqcn_does(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    values = HPCC_200G.values
    assert isinstance(values, HpccParameters)
    blind_ns = values.base_rtt_ns * _STRETCH + 2 * _TICK_NS  # from the first packets to the first report's effect
    surplus = (_SENDERS - 1) * _PORT_BPS * blind_ns / 8e9 + _SENDERS * _FRAME
    queue, xoff = _most(hpn, tmp_path, "hpcc")
    assert queue <= surplus
    assert xoff == 0
    marked_queue, marked_xoff = _most(hpn, tmp_path, "dcqcn", ", ecn: {kmin: 60 KB, kmax: 240 KB, pmax: 0.8}")
    assert marked_queue > 2 * queue
    assert marked_xoff > 0
