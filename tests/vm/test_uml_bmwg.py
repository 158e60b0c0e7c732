"""The report of BMWG's draft over runs in virtual time, held against a judge that shares no code with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpn import cli
from tests.product.bmwg_judge import differences
from tests.product.hpn import skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]
DRILL = """
drill: {name}
summary: a collective over four accelerators
topology: {{name: four, segments: 2, hosts: 2, rails: 1, aggs: 3, scale: 4000, switch: {{buffer: 4 MB}}}}
job:
  collective: {{kind: {kind}, size: 1 MB{pause}}}
  queue_pairs: 3
  source_ports: hash
  window: 32
  ib_timeout: 18
sample: {{queues: 10 ms, ports: switches}}
timeline: {timeline}
expect: [job_survives: yes]
"""
CUT = (
    "{healthy: 3 s, faults: [{id: cut, fault: link-down, target: p0.s0.t0.0-p0.a0.1, at: 3 s, for: 1 s}], settle: 1 s}"
)
SUITE = """
suite: two
runs:
  - {drills: [exchange.yaml, training.yaml, cut.yaml], engines: [uml-virtual-time]}
"""


def _run(*arguments: object) -> str:
    found = CliRunner().invoke(cli.command_line, [str(each) for each in arguments], prog_name="hpn")
    assert found.exit_code == 0, found.output
    return found.output


def test_the_report_has_the_figures_that_a_foreign_judge_computes(tmp_path: Path) -> None:
    skip_without_virtual_time()
    for name, kind, pause, timeline in (
        ("exchange", "all-to-all", "", "{healthy: 2 s}"),
        ("training", "all-reduce", ", pause: 40 ms", "{healthy: 2 s}"),
        ("cut", "all-reduce", "", CUT),
    ):
        text = DRILL.format(name=name, kind=kind, pause=pause, timeline=timeline)
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "suite.yaml").write_text(SUITE)
    runs, report = tmp_path / "out", tmp_path / "report.json"
    _run("ci", "run", tmp_path / "suite.yaml", "--out", runs)
    _run("ci", "bmwg", runs, "--out", report, "--json")
    document = json.loads(report.read_text())
    told = {test["section"] for test in document["tests"] if test["rows"]}
    assert {"4.2", "8", "9.2", "10.1", "11.1", "11.2"} <= told
    compared, wrong = differences(runs, document)
    assert wrong == []
    assert compared >= 30
    document["tests"][0]["rows"][0][3] += 1  # a planted error
    assert len(differences(runs, document)[1]) == 1
    page = tmp_path / "report.md"
    _run("ci", "bmwg", runs, "--out", page)
    assert "## 8. Comparability Statement" in page.read_text()
    assert "Parameters that differ:" in page.read_text()
