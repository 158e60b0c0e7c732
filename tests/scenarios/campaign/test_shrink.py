"""The smallest sequence that still fails is found, and it is never smaller than that."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hpn.failover.faults import MS
from hpn.scenarios.campaign.drillfile import is_valid
from hpn.scenarios.campaign.plan import HEALTHY_NS, FaultSequence
from hpn.scenarios.campaign.shrink import candidates, shrink
from tests.scenarios.campaign.samples import CRASH, CUT, FLAP, PLAN, sequence
from tests.scenarios.campaign.test_plan import choices_of, drawn

TARGETS = {choice.kind: choice.targets for choice in choices_of("tiny")}


def valid(found: FaultSequence) -> bool:
    return is_valid(PLAN, found)


def test_one_guilty_fault_is_left_and_made_simple() -> None:
    guilty = sequence(FLAP, CRASH, CUT)
    found = shrink(guilty, lambda one: any(step.kind == "link-down" for step in one.steps), valid, TARGETS)
    (step,) = found.steps
    assert (step.kind, step.target, step.at_ns, step.for_ns) == (
        "link-down",
        TARGETS["link-down"][0],
        HEALTHY_NS,
        170 * MS,
    )


def test_two_faults_that_are_guilty_together_stay_together() -> None:
    def both(one: FaultSequence) -> bool:
        return {"tor-crash", "link-flap"} <= {step.kind for step in one.steps}

    found = shrink(sequence(FLAP, CRASH, CUT), both, valid, TARGETS)
    assert [step.kind for step in found.steps] == ["link-flap", "tor-crash"]
    assert dict(found.steps[0].arguments)["count"] == 1


def test_how_long_it_must_last_is_kept() -> None:
    def long(one: FaultSequence) -> bool:
        return (one.steps[0].for_ns or 0) >= 600 * MS

    assert shrink(sequence(CUT), long, valid, {}).steps[0].for_ns == CUT.for_ns


def test_it_stops_after_so_many_runs_with_the_smallest_so_far() -> None:
    runs: list[FaultSequence] = []

    def fails(one: FaultSequence) -> bool:
        runs.append(one)
        return True

    found = shrink(sequence(FLAP, CRASH, CUT), fails, valid, TARGETS, most=3)
    assert len(runs) == 3
    assert found == runs[-1]


@given(st.integers(0, 10**6), st.data())
def test_what_is_found_fails_is_valid_and_no_single_fault_of_it_can_go(index: int, data: st.DataObject) -> None:
    start = drawn("tiny", 1, index)
    guilty = set(data.draw(st.lists(st.sampled_from([step.kind for step in start.steps]), min_size=1)))

    def fails(one: FaultSequence) -> bool:
        return guilty <= {step.kind for step in one.steps}

    found = shrink(start, fails, valid, TARGETS, most=1000)
    assert fails(found)
    assert valid(found)
    assert len(found.steps) == len(guilty)
    assert not [one for one in candidates(found, TARGETS) if valid(one) and fails(one)]


def test_nothing_smaller_is_nothing_to_run() -> None:
    smallest = sequence(replace(CUT, target=TARGETS["link-down"][0], at_ns=HEALTHY_NS, for_ns=100 * MS))
    assert list(candidates(smallest, TARGETS)) == []
