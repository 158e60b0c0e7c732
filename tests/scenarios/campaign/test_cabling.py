"""A campaign asks every port for its far end: cables that somebody left exchanged break an invariant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.faults import MS
from hpn.scenarios.campaign import lab_job
from hpn.scenarios.campaign.invariants import cabling
from hpn.scenarios.campaign.plan import FaultStep
from hpn.scenarios.campaign.result import Invariant, Result, SequenceJob
from hpn.testbed.lab.breaking.crossing import Crossings
from hpn.testbed.lab.cabling import FarEnd
from tests.scenarios.campaign.samples import PLAN, sequence

ONE, OTHER = "p0.s0.h0.r0.0", "p0.s0.h0.r0.1"
OWN_CABLES = FaultStep("cables-swapped", ONE, 600 * MS, 700 * MS, (("with", OTHER), ("unplugged", 50 * MS)))
"""Both go to a ToR of the NIC's own, with the NIC's own key: neither LACP nor BGP refuses."""


def _result(folder: Path) -> Result:
    job = SequenceJob(replace(PLAN, kinds=("cables-swapped",)), (sequence(OWN_CABLES),))
    assert lab_job.run(job, folder) == 0
    report = lab_job.read_report(folder)
    assert not report.error
    (result,) = report.results
    return result


@pytest.mark.kernel
def test_cables_that_are_plugged_back_break_nothing(tmp_path: Path) -> None:
    assert _result(tmp_path).violations == ()


@pytest.mark.kernel
def test_cables_that_nobody_plugs_back_are_found_although_it_converges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Crossings, "uncross", lambda *_links: None)
    found = {violation.invariant: violation.text for violation in _result(tmp_path).violations}
    assert set(found) == {Invariant.CABLING, Invariant.LEAK, Invariant.STATE}, (
        "it converges, forwards and loses nothing"
    )
    assert "LACP partner" in found[Invariant.STATE], "of another port number, with the right key"
    assert "p0.s0.h0:r0p0 has p0.s0.t0.1:h0r0, not p0.s0.t0.0:h0r0" in found[Invariant.CABLING]


def test_a_port_that_hears_nobody_or_two_is_told() -> None:
    ends = (
        FarEnd("a", "h:0", "t:0", ("t:0",)),
        FarEnd("a", "t:0", "h:0", ()),
        FarEnd("b", "h:1", "t:1", ("t:0", "t:1")),
    )
    (violation,) = cabling(ends)
    assert violation.invariant is Invariant.CABLING
    assert violation.text == "t:0 has nobody, not h:0; h:1 has t:0 and t:1, not t:1"
