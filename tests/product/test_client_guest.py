"""Programs of others in virtual time: a ring over TCP takes what its bound says, beside streams, twice the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run.folder import load
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]

SIZE_BYTES, RANKS = 500_000, 4
DRILL = f"""
drill: beside
summary: a ring of TCP connections beside streams that are hit by a cut
topology: tiny
workload:
  pattern: permutation
  load: 10 %
  client:
    run: command
    command: ['{{python}}', -P, '{{programs}}/ring.py', '{SIZE_BYTES}', '40']
timeline:
  healthy: 1500 ms
  faults:
    - {{id: cut, fault: link-down, target: p0.s0.h0.r1.0, at: 1500 ms, for: 1 s}}
  settle: 1 s
expect:
  - job_survives: yes
  - worst_outage: {{below: 100 ms, edge: failure}}
  - iterations_during: {{at_least: 95 %, of: before}}
  - state_restored: yes
"""


def test_a_ring_takes_its_bound_beside_streams_and_two_runs_are_the_same_to_the_byte(tmp_path: Path) -> None:
    """The cut is on the other rail: it hits streams and leaves the ring alone."""
    skip_without_virtual_time()
    file = tmp_path / "beside.yaml"
    file.write_text(DRILL)
    hpn = Hpn(tmp_path)
    for out in ("first", "second"):
        run = ("drill", "run", str(file), "--engine", "uml", "--virtual-time", "--keep-records", "--out", out)
        hpn.run(*run)
    first, second = (_files(tmp_path / out / "beside") for out in ("first", "second"))
    assert first == second
    took = {load(tmp_path / out / "beside").manifest().duration_s for out in ("first", "second")}
    assert len(took) == 1, "of the guest's clock before processes end, in no order that repeats"
    assert "clients/rank-3.log" in first
    assert "equal to those of the run, byte for byte" in hpn.run("analyse", "first/beside")
    metrics = load(tmp_path / "first" / "beside").metrics()
    job = metrics.job
    assert job is not None
    assert (metrics.flow_count, job.ranks, job.wrong, job.deaths) == (16, RANKS, 0, ())
    rate_bps = build(PRESETS["tiny"].spec).nics[0].links[0].rate_bps
    bound_ms = SIZE_BYTES * (RANKS - 1) / RANKS * 8e3 / rate_bps
    (span,) = job.spans
    assert bound_ms < span.least_ms < 1.1 * bound_ms / 0.9, "headers, and the streams' tenth"


def _files(run: Path) -> dict[str, bytes]:
    """All but the manifest, which has the wall clock's time."""
    there = (path for path in run.rglob("*") if path.is_file() and path.name not in {"manifest.json", "report.html"})
    return {str(path.relative_to(run)): path.read_bytes() for path in there}
