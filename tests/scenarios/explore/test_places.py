"""Places of second faults: which states are met once, when a fault is due, how a budget is spread."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from hpn.failover.analysis.edge import EdgeKind
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.workload import queue_pairs_of
from hpn.scenarios.explore.course import Course
from hpn.scenarios.explore.judge import divergence
from hpn.scenarios.explore.labstate import LabState
from hpn.scenarios.explore.places import Side, due_of, places_of, spots_of, spread
from hpn.scenarios.explore.seconds import SECONDS, Scene, chosen
from hpn.scenarios.explore.timers import running
from hpn.scenarios.explore.variant import base_of, variant_of
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import read

S, MS = 10**9, 10**6
START, AT, LATENCY = S, S, 40_000
INJECTED = START + AT + LATENCY
SPEC = catalogue.load("link-down").topology


def event(late_ns: int, kind: EventKind, what: str, subject: str = "r0p0", **detail: str) -> Event:
    return Event(INJECTED + late_ns, kind, "p0.s0.h0", subject, what, detail)


EVENTS = (
    event(0, EventKind.FAULT, "injected", "cut"),
    event(2_560, EventKind.LINK, "carrier-down"),
    event(5_120, EventKind.LAG, "active", "bond0", ports="r0p1"),
    event(S, EventKind.LACP, "expired"),
    event(2 * S, EventKind.FAULT, "restore", "cut"),
    event(2 * S + 2_560, EventKind.LINK, "carrier-up"),
    event(3 * S, EventKind.LACP, "current"),
)
COURSE = Course(EVENTS, START, AT, INJECTED, AT + 2 * S, INJECTED + 2 * S, INJECTED + 5 * S)


def scene(name: str = "link-down") -> Scene:
    drill = catalogue.load(name)
    fabric = build(drill.topology)
    return Scene(fabric, drill.timeline.faults[0], queue_pairs_of(drill, fabric))


def test_a_state_is_tried_once_with_each_second_fault() -> None:
    found = places_of(COURSE, scene(), ("other-port", "uplink"))
    for second in ("other-port", "uplink"):
        digests = [place.spot.digest for place in found.tried if place.second == second]
        assert len(digests) == len({*digests}) > 0
    same = [each.words for each in found.left_out if each.why == "same state as before"]
    assert "other-port before lag active of p0.s0.h0 bond0" in same, "the state after the event before it"
    assert found.states < found.spots


def test_a_second_fault_is_due_a_step_before_or_after_its_event() -> None:
    for spot in spots_of(COURSE, SPEC):
        due_ns = due_of(COURSE, spot)
        assert due_ns is not None
        injected_ns = START + due_ns + LATENCY
        if spot.side is Side.AFTER:
            assert START + due_ns == spot.at_ns + 256
        elif spot.side is Side.BEFORE and spot.room_ns > 100_000:
            assert spot.at_ns - 10_000 <= injected_ns < spot.at_ns


def test_nothing_is_due_before_the_fault_of_its_phase() -> None:
    for place in places_of(COURSE, scene(), (*SECONDS,)).tried:
        assert place.due_ns > (AT if place.spot.phase is EdgeKind.FAILURE else AT + 2 * S)


def test_an_early_return_comes_before_the_repair_and_the_same_fault_again_after_it() -> None:
    found = places_of(COURSE, scene(), ("early-return", "again")).tried
    assert {(place.second, place.spot.phase) for place in found} == {
        ("early-return", EdgeKind.FAILURE),
        ("again", EdgeKind.REPAIR),
    }


def test_a_timer_has_places_within_and_around_its_expiry() -> None:
    words = {spot.words for spot in spots_of(COURSE, SPEC)}
    assert "during LACP current-while of p0.s0.h0 r0p0" in words
    assert not any("expiry of LACP current-while" in each for each in words), "a PDU came in time"
    silent = replace(COURSE, events=EVENTS[:-1], end_ns=INJECTED + 9 * S)
    assert {"before expiry of LACP current-while of p0.s0.h0 r0p0"} <= {s.words for s in spots_of(silent, SPEC)}


def test_a_timer_ends_with_the_event_that_ends_it() -> None:
    (timer,) = (each for each in running(EVENTS, SPEC, COURSE.end_ns) if each.name == "LACP current-while")
    assert (timer.since_ns, timer.until_ns, timer.due_ns) == (INJECTED + S, INJECTED + 3 * S, INJECTED + 4 * S)
    assert [timer.tenth(timer.since_ns + tenth * 300 * MS) for tenth in range(11)] == [*range(11)]


def test_a_digest_is_of_states_and_phases_not_of_the_order_of_events() -> None:
    one, other = LabState(), LabState()
    one.hear(EVENTS[:4])
    other.hear((EVENTS[3], *reversed(EVENTS[:3])))
    timers = [*running(EVENTS, SPEC, COURSE.end_ns)]
    at_ns = INJECTED + S + 10 * MS
    assert one.digest(at_ns, timers) == other.digest(at_ns, timers)
    assert one.digest(at_ns, timers) != one.digest(at_ns + 300 * MS, timers), "another tenth of a timer"
    other.hear((event(S, EventKind.LACP, "detached"),))
    assert one.digest(at_ns, timers) != other.digest(at_ns, timers)


@pytest.mark.parametrize("most", [1, 5, 9])
def test_a_budget_is_spread_over_events_and_changes_no_name(most: int) -> None:
    every = places_of(COURSE, scene(), (*SECONDS,)).tried
    kept = spread(every, most)
    assert kept == spread([*reversed(every)], most)
    assert {*kept} <= {*every}
    counts = [sum(place.spot.number == number for place in kept) for number in {p.spot.number for p in every}]
    assert len(kept) == most
    assert max(counts) - min(counts) <= 1
    assert {place.spot.phase for place in spread(every, 2)} == {*EdgeKind}, "evenly apart"
    two = places_of(COURSE, scene(), ("other-port", "uplink")).tried
    assert {place.second for place in spread(two, 2)} == {"other-port", "uplink"}, "in turn"


@pytest.mark.parametrize(
    ("drill", "expected"),
    [
        ("link-down", {*SECONDS}),
        ("link-down-clos", {*SECONDS}),
        ("link-down-single-tor", {"early-return", "again", "arp-loss", "lacp-loss", "agg", "late-tor"}),
        ("tor-crash", {*SECONDS} - {"late-tor"}),
        ("agg-crash", {"early-return", "again", "agg", "late-tor"}),
    ],
)
def test_the_second_faults_of_a_drill_are_those_that_its_fabric_has(drill: str, expected: set[str]) -> None:
    where = scene(drill)
    assert {second.name for second in SECONDS.values() if chosen(where, second)} == expected


def test_second_faults_of_a_cut_are_beside_what_it_leaves() -> None:
    where = scene()
    targets = {name: step.target for name in SECONDS if (step := chosen(where, SECONDS[name])) is not None}
    assert targets["other-port"] == "p0.s0.h0.r0.1"
    assert targets["sibling-tor"] == "p0.s0.t0.1"
    assert (targets["late-tor"], targets["late-sibling"]) == ("p0.s0.t0.0", "p0.s0.t0.1")
    assert targets["uplink"].startswith("p0.s0.t0.1-p0.a1.")
    assert targets["agg"].startswith("p0.a0.")
    assert targets["peer-port"].endswith(".1")
    assert not targets["peer-port"].startswith("p0.s0.h0.")


def test_a_base_is_light_and_keeps_the_phase_of_its_faults() -> None:
    own = catalogue.load("link-down")
    base = base_of(read(catalogue.find("link-down")), own, Path("drills"))
    assert base.drill.workload.load < own.workload.load / 5
    assert base.drill.workload.ib_timeout == 20
    (fault,) = base.drill.timeline.faults
    assert (fault.id, fault.at_ns, fault.for_ns) == ("cut", 500 * MS, 2 * S)
    assert (own.timeline.faults[0].at_ns - fault.at_ns) % S == 0
    assert {why for _, why in base.unjudged} == {"rates are too coarse with so few packets"}
    assert {each.metric.key for each in base.drill.expectations} >= {"worst_outage", "state_restored", "order"}


def test_a_variant_keeps_what_holds_whatever_fails() -> None:
    base = base_of(read(catalogue.find("link-down")), catalogue.load("link-down"), Path("drills"))
    again = variant_of(base, "m1", base.sequence, "the same")
    assert {each.metric.key for each in again.drill.expectations} == {"state_restored", "packets_lost"}
    assert [planned.id for planned in again.drill.timeline.faults] == ["cut"]
    step = chosen(scene(), SECONDS["again"])
    assert step is not None
    twice = replace(base.sequence, steps=(*base.sequence.steps, replace(step, at_ns=600 * MS)))
    with pytest.raises(InputError, match="both are link-down"):
        variant_of(base, "m2", twice, "the same twice")


def test_a_run_diverges_by_one_step_of_the_clock_or_one_event() -> None:
    end_ns = INJECTED + 3 * S
    assert divergence(EVENTS, (*EVENTS, event(4 * S, EventKind.LACP, "detached")), START, end_ns) == ""
    late = [replace(each, at_ns=each.at_ns + 256) if each is EVENTS[2] else each for each in EVENTS]
    assert "lag active" in divergence(EVENTS, late, START, end_ns)
    assert "in one run only" in divergence(EVENTS, (*EVENTS[:4],), START, end_ns)
    renamed = [Event(1, EventKind.PHASE, "", name, "converged") for name in ("one", "other")]
    assert divergence(renamed[:1], renamed[1:], START, end_ns) == ""
    assert divergence(EVENTS, late, INJECTED + S, end_ns) == "", "the same state as it starts"
    assert "state as traffic starts" in divergence(EVENTS, EVENTS[:2], INJECTED + S, end_ns)


def test_spots_are_in_order_of_time() -> None:
    assert all(one.at_ns <= other.at_ns for one, other in pairwise(spots_of(COURSE, SPEC)))
