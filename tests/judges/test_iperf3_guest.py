"""iperf3 judges goodput at saturation and the length of an outage, in virtual time.

a ---.
b ---+--- fabric ---[40 Mbit/s]--- target        full: both send three quarters of what the target's link carries
source --- fabric ---[cut]--- target             cut: iperf3 beside the drill's streams
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from hpn.results.run import folder
from hpn.results.run.folder import RunFolder
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.workload import flows_of
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.framing import data_bytes, wire_bytes
from tests.judges.beside_iperf3 import INTERVAL_S, Stream

pytestmark = [pytest.mark.guest, pytest.mark.timeout(420)]

_ROOT = Path(__file__).parents[2]
_PATH_MTU = 4096
_LOAD = 0.75  # of a sender's link, which is as fast as the target's
_LINK_BPS = 40_000_000
_CUT_NIC = "p0.s0.h0.r0"
_SHARE = 0.005  # a packet of the 1,204 in a second is a sixth of that; headers are three times as much
_TICKS_MS = 2.0  # both send once a millisecond what is due
_PROBE_BYTES, _PROBE_PPS = 500, 2000
_NETWORK = """\
preset: tiny
architecture: single-tor
scale: 10000
"""
_FULL = f"""\
drill: full
summary: two NICs send one more than its link carries
topology: {{preset: tiny, architecture: single-tor, scale: 10000}}
workload: {{pattern: incast, queue_pairs: 2, load: {_LOAD:.0%}, source_ports: in-turn, ib_timeout: 20}}
profile: quick
timeline:
  healthy: 3 s
  faults:
    - {{id: end, fault: link-down, target: p0.s0.h0.r1.0, at: 3 s, for: 500 ms}}
  settle: 1 s
expect:
  - state_restored: yes
"""
_CUT = """\
drill: cut
summary: the only link of a NIC is cut
topology: {preset: tiny, architecture: single-tor, scale: 10000}
workload: {pattern: pairs, queue_pairs: 1, load: 40 %, path_mtu: 1024, ib_timeout: 20}
profile: quick
timeline:
  healthy: 1 s
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 1 s}
  settle: 5 s  # the bond takes 2.5 s to aggregate again, and iperf3 is over after 6 s
expect:
  - state_restored: yes
"""


@dataclass(frozen=True)
class Measured:
    """Both drills, and what iperf3's servers said of the same."""

    out: Path
    full: RunFolder
    cut: RunFolder

    def said(self, name: str) -> dict[str, Any]:
        """A server's report, as iperf3 writes it."""
        found: dict[str, Any] = json.loads((self.out / f"{name}.json").read_text())
        return found

    def streams(self, name: str) -> list[Stream]:
        """What iperf3 was asked to send."""
        found: list[Stream] = json.loads((self.out / "streams.json").read_text())[name]
        return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    for tool in ("iperf3", "nsenter"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing")
    engine = Uml(virtual_time=True)
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    out = tmp_path_factory.mktemp("iperf3")
    (out / "network.yaml").write_text(_NETWORK)
    (out / "full.yaml").write_text(_FULL)
    (out / "cut.yaml").write_text(_CUT)
    streams = {"full": _saturating(out / "full.yaml"), "cut": [_probe(out / "cut.yaml")]}
    (out / "streams.json").write_text(json.dumps(streams))
    command = (sys.executable, "-B", str(_ROOT / "tests" / "judges" / "beside_iperf3.py"), str(out))
    job = GuestJob(
        command, _ROOT, (out,), {"HPN_STATE_DIR": "/run/hpn-state", "PYTHONPATH": str(_ROOT)}, 1536, 1, 400.0
    )
    lines: list[str] = []
    result = engine.run(job, lines.append)
    assert result.exit_code == 0, "\n".join(lines)
    return Measured(out, folder.load(out / "full"), folder.load(out / "cut"))


def _saturating(drill: Path) -> list[Stream]:
    """What the drill's streams put on the wire of one rail, as datagrams of the same length."""
    flows = _flows(drill)
    ends = sorted({(flow.src_nic, flow.dst_nic) for flow in flows if flow.dst_nic == flows[0].dst_nic})
    size = data_bytes(_PATH_MTU)
    bps = round(_LOAD * _LINK_BPS * size / wire_bytes(_PATH_MTU))
    return [_stream(flows, *pair, 5201 + number, size, bps, 4) for number, pair in enumerate(ends)]


def _probe(drill: Path) -> Stream:
    """Into the NIC that is cut off, from where a stream comes."""
    flows = _flows(drill)
    (source,) = {flow.src_nic for flow in flows if flow.dst_nic == _CUT_NIC}
    return _stream(flows, source, _CUT_NIC, 5201, _PROBE_BYTES, 8 * _PROBE_BYTES * _PROBE_PPS, 6)


def _flows(drill: Path) -> tuple[FlowSpec, ...]:
    asked = load_drill(drill)
    return flows_of(asked.workload, build(asked.topology))


def _stream(
    flows: Sequence[FlowSpec], source: str, target: str, port: int, size: int, bps: int, seconds: int
) -> Stream:
    flow = next(flow for flow in flows if (flow.src_nic, flow.dst_nic) == (source, target))
    hosts = (source.rpartition(".")[0], target.rpartition(".")[0])
    return Stream(
        source=hosts[0], source_ip=flow.src_ip, target=hosts[1], target_ip=flow.dst_ip, port=port,
        size=size, bps=bps, seconds=seconds,
    )  # fmt: skip


def test_goodput_at_saturation_is_what_iperf3_gets_through_the_same_link(measured: Measured) -> None:
    """Of both their payloads: iperf3's is all behind UDP, ours is without BTH and ICRC."""
    (target,) = {stream["target_ip"] for stream in measured.streams("full")}
    nic = next(flow.dst_nic for flow in _flows(measured.out / "full.yaml") if flow.dst_ip == target)
    edge = measured.full.metrics().edges[0]
    (ours,) = [each.goodput.before_bps for each in edge.nics if (each.nic, each.direction) == (nic, "down")]
    second = round(1 / INTERVAL_S)
    inner = [measured.said(f"full.{number}")["intervals"][second:-second] for number in range(2)]
    theirs = sum(fmean(each["sum"]["bits_per_second"] for each in intervals) for intervals in inner)
    as_ours = theirs * _PATH_MTU / data_bytes(_PATH_MTU)
    assert ours == pytest.approx(as_ours, rel=_SHARE), f"hpn {ours:.0f} bit/s, iperf3 {as_ours:.0f}"
    link = _LINK_BPS * _PATH_MTU / wire_bytes(_PATH_MTU)
    assert as_ours == pytest.approx(link, rel=_SHARE), "the link was full"
    print(f"goodput: hpn {ours:.0f}, iperf3 {as_ours:.0f}, the link's {link:.0f} bit/s")


def test_an_outage_is_as_long_as_iperf3_misses_datagrams(measured: Measured) -> None:
    """Both count what is missing, and begin and end it with a packet of their own."""
    report = measured.said("cut.0")["end"]["sum"]
    theirs_ms, ours_ms = 1e3 * report["lost_packets"] / _PROBE_PPS, _outage_ms(measured)
    assert ours_ms > 1000
    assert ours_ms == pytest.approx(theirs_ms, abs=_TICKS_MS)
    print(f"outage: hpn {ours_ms:.2f} ms, iperf3 {theirs_ms:.2f} ms")


def test_iperf3_sees_nothing_in_the_intervals_of_an_outage_and_in_no_other(measured: Measured) -> None:
    """Those at its begin and its end have something in them; so what is empty is shorter, by less than two."""
    empty = [each["sum"]["bytes"] == 0 for each in measured.said("cut.0")["intervals"]]
    first, count = empty.index(True), sum(empty)
    assert empty[first : first + count] == [True] * count, "one outage"
    beyond_ms = _outage_ms(measured) - 1e3 * INTERVAL_S * count
    assert -_TICKS_MS <= beyond_ms < 2e3 * INTERVAL_S + _TICKS_MS
    print(f"outage: {count} intervals of iperf3 are empty, and {beyond_ms:.2f} ms beside them")


def _outage_ms(measured: Measured) -> float:
    """What the drill's stream into the NIC missed."""
    specs = {flow.id: flow for flow in _flows(measured.out / "cut.yaml")}
    (flow,) = [flow for flow in measured.cut.metrics().flows if specs[flow.flow].dst_nic == _CUT_NIC]
    return flow.lost * 1e3 / specs[flow.flow].rate_pps
