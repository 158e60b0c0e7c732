"""A drill whose sender stands still across the end of a known outage: it may not pass what it did not see."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpn.results.judge.verdict import Check, Outcome, Verdict
from hpn.results.run.folder import load
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml

pytestmark = [pytest.mark.guest, pytest.mark.timeout(900)]

HOLE_MS, LIMIT_MS, PAUSE_MS = 55, 50, 15
FROM_MS = (40.5, 41.5, 42.5, 44, 46, 48, 50, 52, 53.5, 54.5)
DRILL = f"""
drill: hole
summary: one NIC-ToR link loses everything for {HOLE_MS} ms
topology: tiny
workload: {{pattern: permutation, queue_pairs: 4, load: 40 %, ib_timeout: 20}}
profile: quick
timeline:
  healthy: 1 s
  faults: [{{id: hole, fault: silent-drop, target: p0.s0.h0.r0.0, at: 1 s, for: {HOLE_MS} ms}}]
  settle: 1500 ms
expect:
  - worst_outage: {{below: {LIMIT_MS} ms, edge: failure, flows: sender}}
"""
ROOT = Path(__file__).resolve().parents[2]


def verdicts(folder: Path, pause_ms: float, *from_ms: float) -> list[Verdict]:
    """Of a run with a pause at each of these times after the injection."""
    engine = Uml(virtual_time=True)
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    (folder / "hole.yaml").write_text(DRILL)
    arguments = ("hole.yaml", str(pause_ms), ".", *map(str, from_ms))
    job = GuestJob(
        command=(sys.executable, "-B", "-m", "tests.scenarios.paused_drill", *arguments),
        cwd=folder,
        writable=(folder,),
        environment={"PYTHONHASHSEED": "0", "HPN_STATE_DIR": "/run/hpn-state", "PYTHONPATH": str(ROOT)},
        memory_mb=1536,
        cpus=1,
        timeout_s=800,
    )
    result = engine.run(job, lambda _line: None)
    assert result.exit_code == 0, result.console_tail
    return [load(folder / str(number)).verdict() for number in range(len(from_ms))]


def of_outage(verdict: Verdict) -> Check:
    return next(check for check in verdict.checks if check.text.startswith("worst outage"))


@pytest.mark.slow
def test_a_hole_of_55_ms_never_keeps_a_limit_of_50_ms_ten_times_wherever_the_sender_stops(tmp_path: Path) -> None:
    found = verdicts(tmp_path, PAUSE_MS, *FROM_MS)
    checks = [of_outage(verdict) for verdict in found]
    for check in checks:
        print(check.outcome, check.measured, check.low, check.high, check.evidence)
    assert all(verdict.outcome is not Outcome.PASS for verdict in found)
    assert all(check.low is not None and check.high is not None for check in checks)
    assert all(
        check.low <= HOLE_MS <= check.high for check in checks if check.low is not None and check.high is not None
    )
    misled = [check for check in checks if check.measured is not None and check.measured < LIMIT_MS]
    assert misled, "some pause made the figure itself keep the limit"


def test_the_same_hole_is_told_from_the_limit_by_a_sender_that_keeps_its_pace(tmp_path: Path) -> None:
    (verdict,) = verdicts(tmp_path, 0, 0)
    check = of_outage(verdict)
    assert check.outcome is Outcome.FAIL
    assert check.low is not None
    assert check.low > LIMIT_MS
