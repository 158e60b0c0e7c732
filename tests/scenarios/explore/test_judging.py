"""Answers of variants: which losses break an invariant, and how a finding's times become round."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.results.judge.verdict import Outcome, decide, holds
from hpn.results.run.folder import create
from hpn.scenarios.campaign.plan import FaultSequence, FaultStep
from hpn.scenarios.campaign.result import Invariant
from hpn.scenarios.drill import catalogue
from hpn.scenarios.explore.judge import judge, late_losses
from hpn.scenarios.explore.smallest import _rounded
from hpn.scenarios.explore.variant import Base, Variant, base_of, variant_of
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import read
from tests.results.sample import MANIFEST, metrics, verdict

MS = 10**6


def _base() -> Base:
    return base_of(read(catalogue.find("link-down")), catalogue.load("link-down"), Path("drills"))


def _variant(base: Base, *more: FaultStep) -> Variant:
    return variant_of(base, "m1", replace(base.sequence, steps=(*base.sequence.steps, *more)), "a variant")


def _broken(folder: Path, base: Base, variant: Variant, outage_ms: int, *, restored: bool = True) -> set[Invariant]:
    run = create(folder)
    run.write_events([])
    run.write_metrics(metrics(outage_ms))
    run.write_manifest(MANIFEST)
    run.write_verdict(decide([holds("state restored", restored, evidence="a route is missing")]))
    return set(judge(base, variant, run).broken)


@pytest.mark.parametrize(("outage_ms", "expected"), [(20, set()), (300, {Invariant.OUTAGE})])
def test_a_flow_with_a_path_left_keeps_the_drill_s_limit(
    tmp_path: Path, outage_ms: int, expected: set[Invariant]
) -> None:
    base = _base()
    assert _broken(tmp_path / "run", base, _variant(base), outage_ms) == expected


def test_a_flow_without_a_path_is_excused(tmp_path: Path) -> None:
    base = _base()
    both = _variant(base, FaultStep("link-down", "p0.s0.h0.r0.1", 600 * MS, 500 * MS))
    assert _broken(tmp_path / "run", base, both, 300) == set()


def test_a_state_that_is_not_restored_breaks_an_invariant(tmp_path: Path) -> None:
    base = _base()
    assert _broken(tmp_path / "run", base, _variant(base), 0, restored=False) == {Invariant.STATE}


def test_a_check_that_every_verdict_makes_breaks_one_too(tmp_path: Path) -> None:
    base, run = _base(), create(tmp_path / "run")
    run.write_events([])
    run.write_metrics(metrics(0))
    run.write_manifest(MANIFEST)
    run.write_verdict(decide([holds("queue pairs leave for a reason and return", False, evidence="one stayed away")]))
    assert judge(base, _variant(base), run).broken == {Invariant.MOVES}
    assert verdict(metrics(0)).outcome is not Outcome.FAIL


def test_losses_long_after_the_last_repair_are_told() -> None:
    found = metrics(50)
    lost_ns = next(flow for flow in found.flows if flow.lost).longest_outages[-1].last_loss_at_ns
    (violation,) = late_losses(found, lost_ns - 1)
    assert violation.invariant is Invariant.SILENCE
    assert "lost 51 packets" in violation.text
    assert [*late_losses(found, lost_ns)] == []


def test_times_are_as_round_as_the_failure_allows() -> None:
    step = FaultStep("link-down", "a", 523_456_789, 500_000_000)
    whole = FaultSequence(0, (replace(step, at_ns=500_000_000), replace(step, target="b")))

    def apart(sequence: FaultSequence) -> bool:
        return sequence.steps[1].at_ns > sequence.steps[0].at_ns

    found = _rounded(whole, apart, lambda _sequence: True)
    assert [each.at_ns for each in found.steps] == [500_000_000, 520_000_000]
    assert _rounded(whole, lambda _sequence: False, lambda _sequence: True) == whole
    assert _rounded(whole, apart, lambda _sequence: False) == whole


@pytest.mark.parametrize("name", ["tor-crash", "agg-crash", "link-flap", "host-replaced", "job-spare-host", "arp-loss"])
def test_drills_of_other_faults_and_traffic_can_be_explored(name: str) -> None:
    own = catalogue.load(name)
    base = base_of(read(catalogue.find(name)), own, Path("drills"))
    assert [each.fault.KIND for each in base.drill.timeline.faults] == [each.fault.KIND for each in own.timeline.faults]
    assert variant_of(base, "m1", base.sequence, "the same").drill.timeline.faults == base.drill.timeline.faults


def test_a_drill_that_expects_only_rates_is_refused() -> None:
    document = read(catalogue.find("link-down"))
    document.data["expect"] = [{"goodput_after": {"at_least": "95 %", "of": "before"}}]
    with pytest.raises(InputError, match="rates are too coarse"):
        base_of(document, catalogue.load("link-down"), Path("drills"))
