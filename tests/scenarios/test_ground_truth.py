"""The self-test: what it says of records whose truth is known, and that it can say no; on the host where it must."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pytest

from hpn.results.judge.ground_truth import GroundTruth, from_json, ground_truth_table
from hpn.results.judge.verdict import Outcome
from hpn.scenarios.selfcheck.selftest import start
from hpn.scenarios.selfcheck.selftest.exact_loss import DOWN, UP, DropSpan, Observed, flows
from hpn.scenarios.selfcheck.selftest.ground_truth import analyse_truth
from hpn.scenarios.selfcheck.selftest.sizes import Pause, Plan
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.vm.engines import ENGINES, HOST
from hpn.testbed.vm.uml import Uml
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.workers.messages import TrafficReport
from tests.failover.synthetic import MS, Dead, Records, S, record

PLAN = Plan(tick_ns=MS // 10, slow_flows=2, healthy_ns=S, outages_us=(1_500, 7_300, 50_000), pauses_us=())
PAUSED = Pause("across the end", 0, 15 * MS)
FABRIC = build(PRESETS["tiny"].spec)
FLOWS = flows(FABRIC, PLAN)
HIT = {UP: frozenset({0, 1}), DOWN: frozenset({3, 4})}  # the third of each direction takes another port
DELAY_NS = MS // 10
HOST_TRIES = 3


@dataclass(frozen=True)
class World:
    """What the network really does, and what the self-test is told of it."""

    dead: tuple[Dead, ...] = tuple(Dead(S + cut.at_ns, S + cut.at_ns + cut.for_ns) for cut in PLAN.cuts())
    reported: tuple[Dead, ...] = field(default_factory=lambda: World.dead)
    also_dead: tuple[Dead, ...] = ()  # for a flow whose path is whole
    pause: Dead | None = None  # of every sender
    planned: bool = False  # the self-test made that pause itself
    drops: int = 0
    delay_ns: int = DELAY_NS

    def self_test(self, folder: Path) -> GroundTruth:
        """The self-test's answer."""
        records = [self._record(flow) for flow in FLOWS]
        both = sum(records[1:], records[0])
        both.sent.tofile(folder / "sent")
        both.received.tofile(folder / "received")
        report = TrafficReport((), self.drops, (str(folder / "sent"),), (str(folder / "received"),))
        spans = [DropSpan(dead.start_ns, dead.start_ns, dead.end_ns, dead.end_ns) for dead in self.reported]
        end_ns = spans[-1].lift_after_ns + PLAN.spacing_ns
        return analyse_truth(
            Observed(
                fabric=FABRIC, engine=HOST.name, kernel="k", datapath="nft", flows=FLOWS, hit=HIT,
                links=("p0.s0.h0.r0.0",), cuts=tuple({UP: span, DOWN: span} for span in spans), start_ns=S,
                pauses=tuple(PAUSED if self.planned else None for _ in spans),
                end_ns=end_ns, healthy_ns=PLAN.healthy_ns, tick_ns=PLAN.tick_ns, report=report, events=(), host=None,
            )
        )  # fmt: skip

    def _record(self, flow: FlowSpec) -> Records:
        hit = any(flow.id in ids for ids in HIT.values())
        by_arrival = self.dead if hit else self.also_dead
        dead = [Dead(one.start_ns - DELAY_NS, one.end_ns - DELAY_NS) for one in by_arrival]
        planned = [self.pause] if self.pause is not None and self.planned else []
        found = record(flow, 2 * S, dead, paused=planned, delay_ns=self.delay_ns)
        if self.pause is None or self.planned:
            return found
        sent_ns, received_ns = found.sent["sent_ns"], found.received["sent_ns"]
        late = (sent_ns >= self.pause.start_ns) & (sent_ns < self.pause.end_ns)
        sent_ns[late] = self.pause.end_ns
        late = (received_ns >= self.pause.start_ns) & (received_ns < self.pause.end_ns)
        received_ns[late] = self.pause.end_ns
        found.received["received_ns"] = received_ns + DELAY_NS
        return found


def test_true_measurements_pass_in_both_directions_and_at_both_rates(tmp_path: Path) -> None:
    found = World().self_test(tmp_path)
    assert list(found.reasons()) == []
    assert found.outcome is Outcome.PASS
    assert len(found.measured) == 4 * len(list(PLAN.cuts()))
    assert {(one.direction, one.rate_pps) for one in found.measured} == {
        (UP, 1_000), (UP, 10_000), (DOWN, 1_000), (DOWN, 10_000),
    }  # fmt: skip
    assert all(one.claim_ms == pytest.approx(1e3 / one.rate_pps) for one in found.measured)


@pytest.mark.parametrize("wrong_ms", [20, -1.4, 1.2])
def test_an_outage_reported_longer_or_shorter_than_it_was_is_caught(tmp_path: Path, wrong_ms: float) -> None:
    reported = tuple(replace(dead, end_ns=dead.end_ns + round(wrong_ms * MS)) for dead in World.dead)
    found = World(reported=reported).self_test(tmp_path)
    assert found.outcome is Outcome.FAIL
    assert {one.rate_pps for one in found.broken} >= {10_000}
    if wrong_ms == 20:
        assert len(found.broken) == len(found.measured)


def test_loss_where_nothing_was_dropped_is_caught(tmp_path: Path) -> None:
    found = World(also_dead=(Dead(2 * S + MS // 2, 2 * S + 2 * MS),)).self_test(tmp_path)
    assert found.outcome is Outcome.FAIL
    assert any("nothing was dropped on its path" in line for line in found.reasons())


def test_loss_between_two_drops_is_caught(tmp_path: Path) -> None:
    stray = Dead(World.dead[0].end_ns + 30 * MS, World.dead[0].end_ns + 32 * MS)
    found = World(dead=(*World.dead, stray), reported=World.dead).self_test(tmp_path)
    assert found.outcome is Outcome.FAIL
    assert any("packets lost while nothing was dropped" in line for line in found.reasons())


def test_a_sender_that_paused_across_the_start_of_a_drop_makes_it_inconclusive(tmp_path: Path) -> None:
    start_ns = World.dead[1].start_ns
    found = World(pause=Dead(start_ns - 4 * MS, start_ns + MS)).self_test(tmp_path)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.noise == ()
    assert all("disturbed" in line for line in found.reasons())


def test_a_machine_that_pauses_or_drops_is_neither_pass_nor_fail(tmp_path: Path) -> None:
    start_ns = World.dead[1].start_ns
    paused = World(pause=Dead(start_ns - 25 * MS, start_ns)).self_test(tmp_path)
    assert (paused.outcome, len(paused.noise)) == (Outcome.INCONCLUSIVE, 1)
    wrong = tuple(replace(dead, end_ns=dead.end_ns + 20 * MS) for dead in World.dead)
    assert World(reported=wrong, drops=3).self_test(tmp_path).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("off_ns", [MS, -MS])
def test_stamps_that_are_a_millisecond_off_are_caught(tmp_path: Path, off_ns: int) -> None:
    found = World(delay_ns=DELAY_NS + off_ns).self_test(tmp_path)
    assert found.outcome is Outcome.FAIL
    assert any("send or receive stamps are off" in line for line in found.reasons())


def test_a_pause_that_the_self_test_made_itself_is_no_excuse_for_an_interval_without_the_truth(tmp_path: Path) -> None:
    """The figure may be off by the pause; the interval has to hold the truth, and is held to it."""
    last = World.dead[-1]
    pause = Dead(last.end_ns - 10 * MS, last.end_ns + 5 * MS)
    found = World(pause=pause, planned=True).self_test(tmp_path)
    assert found.outcome is Outcome.PASS, "\n".join(found.reasons())
    narrow = tuple(replace(one, low_ms=one.plbm_ms - 0.5, high_ms=one.plbm_ms + 0.5) for one in found.measured)
    assert replace(found, measured=narrow).outcome is Outcome.FAIL


def test_nothing_measured_is_no_pass() -> None:
    empty = GroundTruth(HOST.name, "k", "nft", 1.0, 0.0, 0.0, 0.0, (), (), ())
    assert (empty.outcome, list(empty.reasons())) == (Outcome.FAIL, ["no outage was measured"])


def test_the_result_survives_its_file_and_has_a_row_for_each_rate_direction_and_method(tmp_path: Path) -> None:
    found = World().self_test(tmp_path)
    assert from_json(found.to_json()) == found
    assert ground_truth_table(found).row_count == 2 * 2 * 3
    with pytest.raises(MachineError):
        from_json(b"{}")


def test_outages_of_every_engine_are_far_enough_apart_to_be_told_apart() -> None:
    for plan in (start.plan_for(spec) for spec in ENGINES.values() if spec.selftest is not None):
        cuts = list(plan.cuts())
        assert len(cuts) == plan.phases * len(plan.outages_us) + 4 * len(plan.pauses_us)
        gaps_ns = [later.at_ns - earlier.at_ns - earlier.for_ns for earlier, later in pairwise(cuts)]
        assert min(gaps_ns) >= 10e9 / plan.slow_pps


def _tries(folder: Path) -> Iterator[GroundTruth]:
    for number in range(HOST_TRIES):
        place = folder / str(number)
        place.mkdir()
        yield start.run_here(HOST, place)


@pytest.mark.kernel
def test_the_host_measures_what_is_true_where_there_is_no_virtual_time(tmp_path: Path) -> None:
    try:
        Uml(virtual_time=True).check()
    except MachineError:
        pass
    else:
        pytest.skip("virtual time is here and says more: test_ground_truth_guest.py")
    for found in _tries(tmp_path):
        if found.outcome is not Outcome.INCONCLUSIVE:
            assert found.outcome is Outcome.PASS, "\n".join(found.reasons())
            return
    pytest.skip(f"too noisy {HOST_TRIES} times: {next(found.reasons())}")
