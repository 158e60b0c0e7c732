"""Lossless switches at rates that are 2 and 10 times lower: what is counted stays, and times grow by the factor.

By the rules of ``traffic.congestion.scale`` bytes stay and times are multiplied by the factor. The discrete parts do
not follow: packets are whole, and the protocols of the control plane keep their times.

* A pause begins when a whole frame has come and ends when a whole one has left. So each of its ends is off by the time
  of one frame at most, and marks of fill by one frame.
* The run may end within a pause: one XOFF more or less.

All labs are slow enough for every token bucket to hold just two frames: of 1 ms at a higher rate it holds more bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hpn.failover.analysis.buffers import ClassUse
from hpn.results.run.folder import RunFolder, load
from hpn.testbed.fabric.marking import burst_bytes, frame_bytes
from tests.product.hpn import Hpn, skip_without_virtual_time

SCALE, FACTORS, PRIORITY = 6400, (1, 2, 10), 3
DRILL = """
drill: similar
summary: three GPUs send to one over lossless switches
topology: {{preset: tiny, rails: 1, scale: {scale}, switch: {{buffer: 2 MB}}}}
job:
  messages: {{pattern: incast, size: 1 MB, count: 4}}
  gpus: 1
  congestion: line-rate
  tick: {tick} ms
  ib_timeout: 25
timeline: {{healthy: {seconds} s}}
expect:
  - buffer_drops: {{at_most: 0}}
  - headroom_drops: {{at_most: 0}}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, RunFolder]:
    skip_without_virtual_time()
    found = {}
    for factor in FACTORS:
        place = tmp_path_factory.mktemp(f"by-{factor}")
        text = DRILL.format(scale=SCALE * factor, tick=factor, seconds=4 * factor)
        (place / "drill.yaml").write_text(text)
        Hpn(place).run("drill", "run", "drill.yaml", "--engine", "uml-virtual-time", "--out", "out")
        found[factor] = load(place / "out" / "similar")
    return found


def _classes(run: RunFolder) -> Mapping[str, ClassUse]:
    return {each.port: each for each in run.metrics().buffers or () if each.priority == PRIORITY}


@pytest.mark.guest
@pytest.mark.timeout(600)
@pytest.mark.parametrize("factor", FACTORS[1:])
def test_pauses_are_as_many_and_as_long_by_the_factor_at_lower_rates(
    runs: Mapping[int, RunFolder], factor: int
) -> None:
    fabric = runs[1].fabric()
    frame = frame_bytes(fabric.spec)
    rates = {end.label: link.rate_bps for link in fabric.links for end in (link.lower, link.upper)}
    assert {burst_bytes(fabric.spec, rate) for rate in rates.values()} == {2 * frame}
    slow, fast = _classes(runs[factor]), _classes(runs[1])
    stopped = [port for port, each in fast.items() if each.xoff_sent]
    assert len(stopped) >= 5
    for port in stopped:
        one, other = fast[port], slow[port]
        assert abs(one.xoff_sent - other.xoff_sent) <= 1, port
        frame_ns = frame * 8e9 / rates[port]
        assert other.pausing_ns / factor == pytest.approx(one.pausing_ns, abs=2 * one.xoff_sent * frame_ns), port
    for port, one in fast.items():
        assert abs(one.held_max_bytes - slow[port].held_max_bytes) <= frame, port
        assert abs(one.headroom_max_bytes - slow[port].headroom_max_bytes) <= frame, port
        assert abs(one.queue_max_bytes - slow[port].queue_max_bytes) <= frame, port
