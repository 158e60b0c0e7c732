"""An incast over switches that trim, on four planes: what they cut goes again, and all ports carry the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run.folder import load
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]
_DRILL = """
drill: trims
summary: nine GPUs send to one over four planes that trim
topology:
  {preset: small, planes: 4, segments: 2, rails: 1, hosts: 5, aggs: 1, scale: 2000, path_control: {enabled: false},
  SRV6switch: {buffer: 1 MB, classes: [{priority: 3, dscp: [3], weight: 15, limit: 150 KB,
    ecn: {kmin: 30 KB, kmax: 120 KB, pmax: 1}, trim: yes}]}}
job:
  {messages: {pattern: incast, size: 1 MB, count: 8}, gpus: 1, transport: multipath, congestion: nscc, ib_timeout: 20}
sample: {queues: 10 ms}
timeline: {healthy: 3 s}
expect:
  - job_survives: yes
  - wrong_results: {at_most: 0}
  - packets_trimmed: {at_least: 20}
  - buffer_drops: {at_most: 0}
  - paths_denied: {at_most: 0}
"""


@pytest.mark.parametrize("srv6", ["", "srv6: {}, "])
def test_every_trimmed_packet_goes_again_and_no_port_carries_more_than_another(srv6: str, tmp_path: Path) -> None:
    skip_without_virtual_time()
    (tmp_path / "trims.yaml").write_text(_DRILL.replace("SRV6", srv6))
    said = Hpn(tmp_path).run("drill", "run", "trims.yaml", "--engine", "uml", "--virtual-time", "--out", "out")
    assert "PASS  trims" in said
    assert "goodput all planes" in said, "nobody counts a packet's plane"
    metrics = load(tmp_path / "out" / "trims").metrics()
    assert metrics.job is not None
    assert metrics.buffers is not None
    trimmed = sum(each.trimmed for each in metrics.buffers)
    counters = metrics.job.summed_counters
    assert counters["path_trims"] == pytest.approx(trimmed, abs=4), "news of the last may be under way"
    waiting = counters["path_trims"] - metrics.job.packets_again
    assert 0 <= waiting <= metrics.job.queue_pairs, "the last may wait for room in a window"
    marked = sum(each.marked for each in metrics.buffers)
    assert counters["np_ecn_marked_roce_packets"] == pytest.approx(marked, rel=0.05), "a packet may be marked twice"
    data = [each for each in metrics.buffers if each.is_switch and each.priority == 3]
    towards = [each.sent_packets for each in data if each.port.startswith("p0.s0.") and each.port.endswith(":h0r0")]
    assert len(towards) == 4
    assert max(towards) - min(towards) < 0.05 * max(towards)
