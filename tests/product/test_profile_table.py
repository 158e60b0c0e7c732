"""``make profile-table``: the same fault meets hosts of every profile, and a cell says what its runs say."""

from __future__ import annotations

from pathlib import Path

from hpn.failover.faults.base import VisibleTo
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.run.manifest import Manifest
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.testbed.fabric.profiles import LAB, PRODUCTION
from hpn.testbed.fabric.spec import LACP_PERIOD_MS
from hpn.testbed.files.document import parse
from tests.product.profile_cells import FAULTS, Fault, Trial, trials
from tests.product.profile_page import Cost, Made, page

MS = 10**6


def drill_of(trial: Trial) -> Drill:
    return drill_from(parse(trial.drill, f"{trial.name}.yaml"), Path())


def test_a_fault_is_the_same_under_every_profile_and_lasts_until_lacp_is_through_with_it() -> None:
    for fault in FAULTS:
        lab, production = (drill_of(Trial(fault, profile)) for profile in (LAB, PRODUCTION))
        assert (lab.topology.profile, production.topology.profile) == (LAB, PRODUCTION)
        assert lab.workload == production.workload
        for drill in (lab, production):
            (planned,) = drill.timeline.faults
            assert planned.fault.TELLS is (VisibleTo.CARRIER if fault.dark else VisibleTo.NOBODY)
            if not fault.dark:
                assert planned.for_ns is not None
                late_ms = 3 * LACP_PERIOD_MS[drill.topology.lacp.rate] + 3000
                assert planned.for_ns > late_ms * MS, "expired and defaulted"
                assert planned.for_ns > drill.topology.bgp.hold_s * 1000 * MS
        assert [each.fault for each in lab.timeline.faults] == [each.fault for each in production.timeline.faults]


def _made(fault: Fault, profile: str, cost: Cost, outcome: Outcome = Outcome.PASS) -> Made:
    manifest = Manifest("d", "tiny", "hpn", (), "uml-virtual-time", "kernel", "6.12", "", 0)
    return Made(Trial(fault, profile), manifest, Verdict(outcome, ()), cost)


def test_a_cell_says_what_its_runs_say() -> None:
    cut, mute = FAULTS[0], next(fault for fault in FAULTS if fault.key == "mute")
    text = page(
        [
            _made(cut, LAB, Cost(0.1, 0.0, 0.4, None, 0)),
            _made(mute, LAB, Cost(2400.0, 0.0, 800.0, 90.0, 0)),
            _made(mute, LAB, Cost(2400.0, 0.0, 1200.0, 0.0, 0)),
            _made(mute, PRODUCTION, Cost(70_000.0, 0.0, 60_300.0, 0.0, 3)),
        ]
    )
    assert cut.title not in text, "there is no run under production"
    assert "| LACPDUs lost | lab | 2.4 s | 0 | 0.8-1.2 s | 0-90 ms | 0 |" in text
    assert "| LACPDUs lost | production | 70.0 s | 0 | 60.3 s | 0 | 3 |" in text
    assert "Virtual time, Linux 6.12, LAG datapath kernel, 4 runs." in text


def test_a_run_that_broke_a_promise_is_named() -> None:
    made = _made(FAULTS[0], LAB, Cost(0.0, 0.0, 0.0, 0.0, 0), Outcome.FAIL)
    assert "cut-lab, phase 1: fail" in page([made])


def test_every_fault_is_tried_under_every_profile() -> None:
    assert len(list(trials())) == 2 * len(FAULTS)
