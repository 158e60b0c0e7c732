"""Queue pairs of the kernel's Soft-RoCE in drills, in virtual time: steps, their devices' counters, their packets.

Three drills in one guest, two with a port of a NIC gone for a second. ``steered``: the hosts' LAGs lead around it.
``stalled``: nobody does, so what the drill says of the outage is held against what the driver and the tool say.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from hpn.results.run.folder import load
from hpn.testbed.errors import MachineError
from hpn.testbed.vm import uml_kernel
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml
from hpn.traffic.client.rdma import missing_for

pytestmark = [pytest.mark.guest, pytest.mark.extra, pytest.mark.timeout(400)]

_ROOT = Path(__file__).parents[2]
STEERED = """\
drill: steered
summary: two ranks write to each other while one loses a port
description: for the test
topology: {preset: tiny, segments: 1, path_control: {policy: steer-destinations}}
workload:
  client: {run: verbs, size: 64 KiB, pause: 10 ms}
capture: {after: 300 ms}
timeline:
  healthy: 2 s
  faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 2 s, for: 1 s}]
  settle: 4 s
expect:
  - job_survives: yes
  - wrong_results: {at_most: 0}
  - state_restored: yes
"""
INCAST = """\
drill: incast
summary: three ranks write to the first, over lossless switches
topology: {preset: tiny, rails: 1, scale: 4000, switch: {buffer: 2 MB}}
workload:
  client: {run: verbs, work: incast, size: 500 KB, ib_timeout: 18}
timeline: {healthy: 3 s}
expect:
  - job_survives: yes
  - wrong_results: {at_most: 0}
  - buffer_drops: {at_most: 0}
  - headroom_drops: {at_most: 0}
  - state_restored: yes
"""
STALLED = """\
drill: stalled
summary: two ranks play ping-pong while one loses a port
topology: {preset: tiny, segments: 1}
workload:
  client: {run: rxe-pingpong, ranks: 2, size: 64 KiB, rounds: 30}  # long runs: the cut shall meet one, not a begin
timeline:
  healthy: 1 s
  faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 1 s}]
  settle: 4 s
expect:
  - job_survives: yes
  - state_restored: yes
"""
MESSAGE_PACKETS = 16  # of 4,096 bytes
TICK_MS = 10.0  # of the guest's kernel, HZ=100
RETRY_MS = 70.0
"""The retry timer of ibv_rc_pingpong's timeout 14, 67.1 ms (IBTA vol. 1, 9.7.6.1.3), as rxe keeps it: 6 ticks and the
one under way (nsecs_to_jiffies rounds down, a timer of Linux never fires early)."""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        kernel = uml_kernel.find(None, time_travel=True)
    except MachineError as error:
        pytest.skip(str(error))
    lacks = None if "RDMA_RXE" in kernel.options else "the kernel of virtual time has no rdma_rxe: hpn vm build-kernel"
    if lacks := lacks or missing_for("rxe-pingpong", ("ibv_rc_pingpong", "ibverbs-utils")):
        pytest.skip(lacks)
    place = tmp_path_factory.mktemp("rxe")
    drills = [place / "steered.yaml", place / "stalled.yaml", place / "incast.yaml"]
    for file, text in zip(drills, (STEERED, STALLED, INCAST), strict=True):
        file.write_text(text)
    command = (sys.executable, "-B", str(_ROOT / "cli.py"), "drill", "run", *map(str, drills), "--out", str(place))
    job = GuestJob(command, place, (place,), {"HPN_STATE_DIR": "/run/hpn-state"}, 1024, 1, 360.0)
    lines: list[str] = []
    result = Uml(virtual_time=True).run(job, lines.append)
    assert result.exit_code == 0, "\n".join(lines)
    return place


def test_the_kernels_queue_pairs_go_on_while_a_port_is_gone(out: Path) -> None:
    folder = out / "steered"
    steps = len((folder / "iterations.jsonl").read_text().splitlines())
    assert steps > 350
    counters = json.loads((folder / "counters.json").read_text())
    first, second = counters["p0.s0.h0.r0"], counters["p0.s0.h1.r0"]
    assert first["rdma_recvs"] - steps in (0, 1)
    assert first["retry_exceeded_err"] == second["retry_exceeded_err"] == 0
    assert second["sent_pkts"] >= steps * (MESSAGE_PACKETS + 1)  # and an acknowledgement each
    before_and_after = json.loads((folder / "hw_counters.json").read_text())["p0.s0.h0.r0"]["sent_pkts"]
    assert before_and_after["after"] - before_and_after["before"] == first["sent_pkts"]
    _wireshark_reads(folder / "captures" / "1-cut-failure.pcapng")


def test_an_incast_of_the_kernels_queue_pairs_is_stopped_by_pfc_and_loses_nothing(out: Path) -> None:
    """Two of three writes come by one port: 1 MB at 50 Mbit/s is the least time of a step."""
    steps = [json.loads(line) for line in (out / "incast" / "iterations.jsonl").read_text().splitlines()]
    took_ms = [(step["end_ns"] - step["begin_ns"]) / 1e6 for step in steps]
    assert 160 <= statistics.median(took_ms) < 200
    counters = json.loads((out / "incast" / "counters.json").read_text())
    assert {nic: of["rdma_recvs"] >= len(steps) for nic, of in counters.items()} == dict.fromkeys(counters, True)
    assert counters["p0.s0.h0.r0"]["rdma_recvs"] >= 3 * len(steps), "one of each sender"
    used = json.loads((out / "incast" / "buffers.json").read_text())
    assert max(each["pausing_ns"] for each in used if each["priority"] == 3) > 0


def _wireshark_reads(capture: Path) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("all but the capture is as it must be: tshark is missing")
    fields = ("-T", "fields", "-e", "infiniband.bth.opcode", "-e", "_ws.malformed")
    command = (tshark, "-r", str(capture), "-Y", "infiniband", *fields)
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    opcodes = {line.split("\t")[0] for line in lines}
    assert {"6", "7", "9", "17"} <= opcodes  # WRITE first, middle, last with immediate; acknowledgement
    assert [line for line in lines if line.rstrip("\t").count("\t")] == []


def test_a_job_stands_as_long_as_its_driver_tried_again(out: Path) -> None:
    """Each end that has to tries again by its own timer: its count times the timer is the outage, but for one of them.

    Who sends to the NIC that lost the port always has to; that NIC itself where the cut took an acknowledgement.
    """
    stall_ms, _ = _stall(out / "stalled")
    counters = json.loads((out / "stalled" / "counters.json").read_text())
    tried = {nic: of["completer_retry_err"] for nic, of in counters.items() if of["completer_retry_err"]}
    print(f"stall {stall_ms:.1f} ms, tried again {tried}")
    assert {"p0.s0.h1.r0"} <= tried.keys() <= {"p0.s0.h0.r0", "p0.s0.h1.r0"}
    for times in tried.values():
        assert stall_ms == pytest.approx(RETRY_MS * times, abs=RETRY_MS + TICK_MS)
    # What the NIC that lost the port sent again had come, all of it: its acknowledgements are what was lost.
    again = tried.get("p0.s0.h0.r0", 0) * MESSAGE_PACKETS
    assert max(again - MESSAGE_PACKETS, 0) <= counters["p0.s0.h1.r0"]["duplicate_request"] <= again
    # Of what was sent to it once more, all had been lost, but for the begin of the message that the cut met.
    assert counters["p0.s0.h0.r0"]["duplicate_request"] < MESSAGE_PACKETS


def test_iterations_are_lost_for_as_long_as_the_ping_pong_s_own_clock_says(out: Path) -> None:
    """A step's time is what ibv_rc_pingpong prints; lost iterations are counted by the rate before."""
    stall_ms, lost_ms = _stall(out / "stalled")
    print(f"stall {stall_ms:.1f} ms, lost {lost_ms:.1f} ms")
    assert lost_ms == pytest.approx(stall_ms, abs=_usual_ms(out / "stalled"))


def _stall(folder: Path) -> tuple[float, float]:
    """How much longer the longest step took than usual; and what the drill says was lost, as time."""
    job = load(folder).metrics().job
    assert job is not None
    longest = max(each.ms for each in job.iterations)
    assert job.edges[-1].longest_ms == longest
    return longest - _usual_ms(folder), 1e3 * sum(edge.lost for edge in job.edges) / job.edges[0].rate_before


def _usual_ms(folder: Path) -> float:
    job = load(folder).metrics().job
    assert job is not None
    return statistics.median(each.ms for each in job.iterations)
