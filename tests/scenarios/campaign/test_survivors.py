"""Which queue pairs may die: those without a path, those behind silence; no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.faults import MS
from hpn.scenarios.campaign.drillfile import WORKLOAD, drill_of
from hpn.scenarios.campaign.plan import FaultStep, Plan
from hpn.scenarios.campaign.survivors import excuse
from hpn.scenarios.drill.workload import flows_of
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from tests.scenarios.campaign.samples import CUT, PLAN, TINY, sequence

FROM, TO = "p0.s0.h0.r0", "p0.s1.h0.r0"
LONG = 1000 * MS


def excuses(*steps: FaultStep, plan: Plan = PLAN) -> str:
    fabric = build(plan.topology)
    (flow, *_) = [f for f in flows_of(WORKLOAD, fabric) if (f.src_nic, f.dst_nic) == (FROM, TO)]
    return excuse(fabric, drill_of(plan, sequence(*steps)).timeline.faults, flow)


@pytest.mark.parametrize(
    "step",
    [
        FaultStep("link-down", f"{FROM}.0", 600 * MS, LONG),
        FaultStep("tor-crash", "p0.s1.t0.1", 600 * MS, LONG),
        FaultStep("tor-drain", "p0.s1.t0.1", 600 * MS, LONG, (("grace", 200 * MS),)),
        FaultStep("bgp-reset", "p0.s0.t0.0-p0.a0.0", 600 * MS, None),
        FaultStep("link-flap", f"{TO}.1", 600 * MS, None, (("period", 100 * MS), ("duty", 0.5), ("count", 4))),
        FaultStep("plane-down", "plane0", 600 * MS, LONG, (("tier", "aggs"),)),
        FaultStep("host-down", "p0.s1.h1", 600 * MS, LONG),
    ],
    ids=lambda step: step.kind,
)
def test_what_leaves_a_path_and_can_be_seen_excuses_nothing(step: FaultStep) -> None:
    assert excuses(step) == ""


@pytest.mark.parametrize(
    "step",
    [
        FaultStep("nic-down", FROM, 600 * MS, 60 * MS),
        FaultStep("host-down", "p0.s1.h0", 600 * MS, 60 * MS),
        FaultStep("tor-dataplane-death", "p0.s1.t0.1", 600 * MS, LONG),
        FaultStep("lacp-loss", f"{TO}.1", 600 * MS, LONG, (("direction", "both"),)),
    ],
    ids=lambda step: step.kind,
)
def test_no_path_or_long_silence_excuses_a_death(step: FaultStep) -> None:
    assert step.target in excuses(step)


def test_silence_shorter_than_a_queue_pair_retries_excuses_nothing() -> None:
    assert excuses(FaultStep("tor-dataplane-death", "p0.s1.t0.1", 600 * MS, 200 * MS)) == ""


def test_isolated_planes_need_one_whole_plane() -> None:
    here, there = FaultStep("link-down", f"{FROM}.0", 600 * MS, LONG), FaultStep("link-down", f"{TO}.1", 700 * MS, LONG)
    assert "no path is left at 700 ms" in excuses(here, there)
    assert excuses(here, replace(there, target=f"{TO}.0")) == ""


def test_planes_that_meet_above_the_tors_leave_a_path() -> None:
    spec = TINY.model_copy(update={"name": "clos", "architecture": "dual-tor-clos"})
    here, there = FaultStep("link-down", f"{FROM}.0", 600 * MS, LONG), FaultStep("link-down", f"{TO}.1", 700 * MS, LONG)
    assert excuses(here, there, plan=replace(PLAN, topology=spec)) == ""


def test_a_port_that_was_just_repaired_is_not_counted_on() -> None:
    """LACP has to agree again before the port carries anything."""
    first = FaultStep("link-down", f"{FROM}.0", 600 * MS, 100 * MS)
    assert "no path" in excuses(first, replace(first, target=f"{FROM}.1", at_ns=900 * MS))


def test_without_path_control_isolated_planes_promise_nothing_to_who_is_hit() -> None:
    off = TINY.model_copy(
        update={"name": "off", "path_control": TINY.path_control.model_copy(update={"enabled": False})}
    )
    assert "path control is off" in excuses(CUT, plan=replace(PLAN, topology=off))
    assert excuses(replace(CUT, target="p0.s0.h1.r0.0"), plan=replace(PLAN, topology=off)) == ""


def test_a_single_tor_promises_nothing() -> None:
    single = PRESETS["tiny"].spec.model_copy(update={"name": "single", "architecture": "single-tor"})
    assert "no path" in excuses(CUT, plan=replace(PLAN, topology=single))


@pytest.mark.parametrize(("policy", "why"), [("move-source-ports", "no source port moves"), ("rebind", "")])
def test_bound_queue_pairs_in_isolated_planes_live_only_where_they_are_bound_anew(policy: str, why: str) -> None:
    changes = {"nic": {"port_selection": "queue-affinity"}, "path_control": {"policy": policy}}
    bound = TINY.model_validate(TINY.model_dump() | {"name": "bound", **changes})
    found = excuses(CUT, plan=replace(PLAN, topology=bound))
    assert why in found
    assert bool(found) == bool(why)
