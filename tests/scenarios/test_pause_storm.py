"""Drills with faults of lossless switches: where they are refused, by line, and who draws them in a campaign."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hpn.failover.faults import FAULTS
from hpn.scenarios.campaign.campaign import plan_for
from hpn.scenarios.campaign.drillfile import is_valid
from hpn.scenarios.campaign.plan import FaultSequence, Plan, choices, draw
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.writing import DrillRequest, written
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.document import parse
from tests.scenarios.campaign.samples import TINY

SWITCH = "{preset: tiny, switch: {}}"
LOSSLESS = FabricSpec.model_validate(TINY.model_dump() | {"switch": {}})


def load(topology: str, fault: str) -> Drill:
    text = f"drill: d\nsummary: s\ntopology: {topology}\ntimeline:\n  faults:\n    - {{at: 2 s, for: 1 s, {fault}}}\n"
    return drill_from(parse(f"{text}expect:\n  - state_restored: yes\n", "d.yaml"), Path())


@pytest.mark.parametrize(
    ("topology", "fault", "words"),
    [
        ("tiny", "fault: pause-storm, target: p0.s0.h0.r0",
         "d.yaml:6: timeline.faults[0].fault: pause-storm needs switches with a lossless class, and this topology has"
         " none; write one with switch:, such as topology: {preset: tiny, switch: {buffer: 2 MB}}"),
        (SWITCH, "fault: pause-storm, target: p0.s0.h0.r0, priority: 5",
         "d.yaml:6: timeline.faults[0]: priority 5 is not lossless in this topology; write priority: 3 or 4"),
        (SWITCH, "fault: pause-storm, target: p0.s0.h0.r0, priority: 8", "d.yaml:6: timeline.faults[0].priority"),
        (SWITCH, "fault: pause-storm, target: p0.s0.h0",
         "d.yaml:6: timeline.faults[0].target: p0.s0.h0 is a host, but pause-storm needs a NIC or NIC-ToR link;"
         " write one of its: p0.s0.h0.r0, p0.s0.h0.r1, ..."),
        (SWITCH, "fault: pause-storm, target: p0.s0.t0.0-p0.a0.0", "is a link between two switches, but pause-storm"),
        (SWITCH, "fault: link-delay, target: p0.s0.h0.r0.0, delay: 5 ms",
         "d.yaml:6: timeline.faults[0].fault: link-delay would take the buffer of switch: away from its ports; write"
         " the cables' length as switch.cable_m, or leave switch: out of the topology"),
    ],
)  # fmt: skip
def test_a_fault_that_does_not_fit_the_switches_is_refused_by_line(topology: str, fault: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        load(topology, fault)
    assert words in str(caught.value)


@pytest.mark.parametrize("target", ["p0.s0.h0.r0", "p0.s0.h0.r0.1"])
def test_a_nic_or_one_of_its_ports_is_stuck(target: str) -> None:
    (planned,) = load(SWITCH, f"fault: pause-storm, target: {target}, priority: 4").timeline.faults
    assert planned.fault == FAULTS["pause-storm"](target, 4)  # type: ignore[call-arg] # of any kind of fault
    assert planned.repaired_at_ns == 3 * 10**9


def test_a_new_drill_has_the_switches_of_the_library_and_others_are_refused() -> None:
    text = written(DrillRequest(fault="pause-storm"))
    assert "topology: {preset: tiny, switch: {buffer: 2 MB}}" in text
    assert "ib_timeout: 20" in text
    assert "by default priority: 3" in text
    with pytest.raises(InputError, match="write one with switch:"):
        written(DrillRequest(fault="pause-storm", topology="small"))


def test_the_drill_with_a_watchdog_differs_from_its_counterpart_in_the_watchdog_alone() -> None:
    with_, without = catalogue.load("pause-storm-watchdog"), catalogue.load("pause-storm")
    assert (with_.timeline, with_.workload) == (without.timeline, without.workload)
    assert with_.topology.switch is not None
    assert with_.topology.switch.watchdog is not None
    assert with_.topology.switch.model_copy(update={"watchdog": None}) == without.topology.switch


def _drawn(plan: Plan, index: int) -> FaultSequence:
    return draw(plan, choices(build(plan.topology), plan.kinds), index, partial(is_valid, plan))


def test_campaigns_on_switches_without_a_buffer_draw_as_if_there_were_no_pause_storm() -> None:
    known = Plan(1, TINY, tuple(FAULTS))
    without = replace(known, kinds=tuple(kind for kind in FAULTS if kind != "pause-storm"))
    assert [_drawn(known, index) for index in range(60)] == [_drawn(without, index) for index in range(60)]


def test_campaigns_on_lossless_switches_draw_it_and_no_delay() -> None:
    plan = Plan(1, LOSSLESS, tuple(FAULTS))
    met = {step.kind for index in range(200) for step in _drawn(plan, index).steps}
    assert "pause-storm" in met
    assert "link-delay" not in met


def test_the_plan_of_a_campaign_names_only_kinds_that_fit_its_switches(tmp_path: Path) -> None:
    engine = "uml-virtual-time"
    assert set(FAULTS) - set(plan_for(tmp_path, 1, TINY, engine).kinds) == {"pause-storm", "optical-circuits"}
    assert set(FAULTS) - set(plan_for(tmp_path, 1, LOSSLESS, engine).kinds) == {"link-delay", "optical-circuits"}
