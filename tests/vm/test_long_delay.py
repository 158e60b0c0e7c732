"""A delay that netem makes in a guest in virtual time, seen by expectations of delay and by none of loss."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hpn.results.run import folder
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.uml import Uml
from tests.product.hpn import ROOT

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]


def test_150_ms_on_every_packet_for_2_s_are_an_impairment_of_2_s_and_no_outage(tmp_path: Path) -> None:
    try:
        Uml(virtual_time=True).check()
    except MachineError as error:
        pytest.skip(str(error))
    drill = ("drill", "run", "long-delay", "--engine", "uml", "--virtual-time", "--out", str(tmp_path))
    done = subprocess.run([sys.executable, str(ROOT / "cli.py"), *drill], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "impairment in ms = (missing + later than 100 ms) / rate" in done.stdout
    run = folder.load(tmp_path / "long-delay")
    failure = run.metrics().edges[0]
    assert failure.worst_outage_plbm_ms == failure.worst_outage_tbm_ms == 0
    assert failure.impairment.worst_ms == pytest.approx(2000, abs=failure.resolution_ms)
    assert failure.impairment.worst_receive_gap_ms == pytest.approx(150, abs=2)
    lines = [json.loads(line) for line in (run.path / "flows.jsonl").read_text().splitlines()]
    late = {line["name"] for line in lines if line["impairment"]["packets"]}
    assert len(late) == 4, "of the eight flows that are hit, those of the port"
