"""A network half of whose hosts have network files of their own, in virtual time: a silent port costs what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run import folder
from tests.fabric.own_hosts import topology, write
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(900)]
_LONGEST_S = 400  # of two virtual minutes on a busy machine
_DRILL = """
drill: silent
summary: a port of a slow and one of a fast host lose all frames and keep their light
topology: own-hosts.yaml
workload: {pattern: permutation, load: 1 %, ib_timeout: 25}
timeline:
  healthy: 1 s
  faults:
    - {id: slow, fault: silent-drop, target: "gpu-a:eth0", at: 1 s, for: 105 s}
    - {id: fast, fault: silent-drop, target: "gpu-b:eth0", at: 1 s, for: 105 s}
  settle: 5 s
expect:
  - state_restored: yes
"""


@pytest.mark.parametrize("lag", ["nft", "kernel"])
def test_each_host_leaves_a_silent_port_by_the_timer_of_its_file(tmp_path: Path, lag: str) -> None:
    skip_without_virtual_time()
    write(tmp_path, topology(more=f"lag: {lag}"))
    (tmp_path / "silent.yaml").write_text(_DRILL)
    command = ("drill", "run", "./silent.yaml", "--engine", "uml-virtual-time", "--out", "out")
    process = Hpn(tmp_path).start(*command)
    said = "".join(process.communicate(timeout=_LONGEST_S))
    assert process.returncode == 0, said
    run = folder.load(tmp_path / "out" / "silent")
    events = [event for event in run.events() if event.node in ("gpu-a", "gpu-b")]
    cut = min(event.at_ns for event in run.events() if event.kind == "fault")
    left = {
        event.node: (event.at_ns - cut) / 1e9 for event in reversed(events) if event.kind == "lag" and event.at_ns > cut
    }
    print(f"{lag}: left the silent port after {left}")
    assert 1.5 <= left["gpu-b"] <= 3.5, "three LACPDUs a second"
    # At HZ=100 each of the driver's 900 ticks of 100 ms is a jiffy late: AD_LONG_TIMEOUT_TIME is 99 s.
    assert 58.0 <= left["gpu-a"] <= (99.5 if lag == "kernel" else 90.5), "three in 30 s each"
    metrics = run.metrics()
    assert metrics is not None
    for host in left:
        outage_s = max(flow.lost / flow.rate_pps for flow in metrics.flows if flow.src_nic == f"{host}.r0")
        assert outage_s == pytest.approx(left[host], abs=0.3), f"what {host} sends into the port is lost until then"
