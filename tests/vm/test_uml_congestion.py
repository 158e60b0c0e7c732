"""A crash that asks more of the remaining links than they carry is told as that, on a fabric that nobody prepared."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hpn.results.judge.verdict import Outcome
from hpn.results.run.folder import load
from hpn.scenarios.drill.writing import DrillRequest
from hpn.scenarios.model.fitted_drill import fitted
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.uml import Uml
from tests.product.hpn import Hpn

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]

TOPOLOGY = "{preset: small, segments: 2, rails: 1, hosts: 4, aggs: 2}"


def test_a_crash_that_overloads_links_is_told_as_congestion(tmp_path: Path) -> None:
    try:
        Uml(virtual_time=True).check()
    except MachineError as error:
        pytest.skip(str(error))
    hpn = Hpn(tmp_path)
    text = fitted(DrillRequest(fault="tor-crash", topology=TOPOLOGY, name="crash"))
    text = re.sub(r"load: \d+ %", "load: 48 %", text) + (
        "  - failover_outage: {below: 60 ms, edge: failure}\n  - congestion_loss: {at_least: 500, edge: failure}\n"
    )
    (tmp_path / "crash.yaml").write_text(text)
    junit, summary = tmp_path / "j.xml", tmp_path / "s.md"
    said = hpn.run(
        *("drill", "run", str(tmp_path / "crash.yaml"), "--engine", "uml", "--virtual-time"),
        *("--out", str(tmp_path / "out"), "--junit", str(junit), "--summary", str(summary)),
        code=1,
    )
    run = load(tmp_path / "out" / "crash")
    verdict = run.verdict()
    outcomes = {check.text: check.outcome for check in verdict.checks}
    assert outcomes["worst outage of hit flows at failure below 100 ms"] is Outcome.FAIL, "what it was told as"
    assert outcomes["failover outage at failure below 60 ms"] is Outcome.PASS
    assert outcomes["congestion loss at failure at least 500"] is Outcome.PASS
    assert verdict.causes[0].startswith("failure of crash: downlink p0.a1.1 to p0.s0.t0.1: 108 % of its rate")
    page = (run.path / "report.html").read_text()
    for place in (" ".join(said.split()), junit.read_text(), summary.read_text(), page):
        text = place.replace("\\", "").replace("&#10;", " ")
        assert "downlink p0.a1.1 to p0.s0.t0.1: 108 % of its rate" in text
        assert text.index("is congestion") < text.index("100 ms, margin" if "100 ms, margin" in text else "100 ms -")
    metrics = json.loads((run.path / "metrics.json").read_text())
    lost = sum(edge["lost"] for edge in metrics["edges"])
    congested = sum(edge["congestion"]["packets"] for edge in metrics["edges"])
    assert 0.95 * lost < congested <= lost
