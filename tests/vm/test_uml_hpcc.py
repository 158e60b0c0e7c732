"""HPCC and TIMELY over switches, beside DCQCN over the same switches with marks: what real queues hold, and shares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from hpn.results.run.folder import load
from hpn.scenarios.paper.measures import mean_queue_ms
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(600)]
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


@dataclass(frozen=True, slots=True)
class _Seen:
    """Mean queue of ports towards NICs, the XOFF that switches sent, and the bytes of each sender, most first."""

    queue_ms: float
    stops: int
    bytes_: list[int]


def _seen(at: Path, name: str, ecn: str = "") -> _Seen:
    skip_without_virtual_time()
    (at / f"{name}.yaml").write_text(_DRILL.format(name=name, ecn=ecn))
    said = Hpn(at).run("drill", "run", f"{name}.yaml", "--engine", "uml", "--virtual-time", "--out", "out")
    assert f"PASS  short-{name}" in said
    run = load(at / "out" / f"short-{name}")
    found = run.metrics()
    assert found.buffers is not None
    sent = [pair.counters["bytes_acknowledged"] for pair in run.queue_pairs()]
    stops = sum(each.xoff_sent for each in found.buffers if each.is_switch)
    return _Seen(mean_queue_ms(found), stops, sorted(sent, reverse=True))


@pytest.fixture(scope="module")
def dcqcn(tmp_path_factory: pytest.TempPathFactory) -> _Seen:
    return _seen(tmp_path_factory.mktemp("dcqcn"), "dcqcn", ", ecn: {kmin: 60 KB, kmax: 240 KB, pmax: 0.8}")


@pytest.mark.slow
def test_hpcc_leaves_the_queue_next_to_empty_and_stops_nobody_where_dcqcn_does(dcqcn: _Seen, tmp_path: Path) -> None:
    hpcc = _seen(tmp_path, "hpcc")
    assert hpcc.queue_ms < dcqcn.queue_ms / 10
    assert hpcc.stops == 0 < dcqcn.stops


def test_timely_keeps_the_queue_below_dcqcns_and_its_senders_unfair(dcqcn: _Seen, tmp_path: Path) -> None:
    """Its known failure (Zhu et al., ECN or Delay, CoNEXT 2016, section 4): rates have no unique fixed point."""
    timely = _seen(tmp_path, "timely-200g")
    assert timely.queue_ms < dcqcn.queue_ms
    assert timely.bytes_[0] > 2 * timely.bytes_[-1]
    assert dcqcn.bytes_[0] < 1.3 * dcqcn.bytes_[-1]
