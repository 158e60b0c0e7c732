"""Queue pairs of the kernel's Soft-RoCE in a drill, in virtual time: steps, their devices' counters, their packets."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.errors import MachineError
from testbed.vm import uml_kernel
from tests.product.hpn import Hpn
from traffic.client.rdma import missing_for

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]
DRILL = """\
drill: rxe
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
MESSAGE_PACKETS = 16  # of 4,096 bytes


def test_the_kernels_queue_pairs_go_on_while_a_port_is_gone(tmp_path: Path) -> None:
    try:
        kernel = uml_kernel.find(None, time_travel=True)
    except MachineError as error:
        pytest.skip(str(error))
    lacks = None if "RDMA_RXE" in kernel.options else "the kernel of virtual time has no rdma_rxe: hpn vm build-kernel"
    if lacks := lacks or missing_for("verbs"):
        pytest.skip(lacks)
    (tmp_path / "rxe.yaml").write_text(DRILL)
    Hpn(tmp_path).run("drill", "run", "./rxe.yaml", "--engine", "uml", "--virtual-time", "--out", "run")
    folder = tmp_path / "run" / "rxe"
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
