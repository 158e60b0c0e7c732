"""The fault catalogue: what each fault hits, when its edges are due, and how flows stand to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.failover.analysis.model import EdgeKind, Relation
from hpn.failover.faults import LinkDown, LinkFlap, PlannedEdge, PlannedFault, TorCrash, nics_hit
from hpn.scenarios.drill.blast_radius import relations, transit_flows
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.traffic.flows.flow import FlowSpec

MS = 10**6
FAILURE, REPAIR = EdgeKind.FAILURE, EdgeKind.REPAIR


@pytest.fixture(scope="module")
def tiny() -> Fabric:
    return build(PRESETS["tiny"].spec)


def flow(number: int, src: str, dst: str) -> FlowSpec:
    return FlowSpec(number, f"{src}>{dst}", src, dst, "", "", 0xC000, 0xC001, 1000.0)


FLOWS = (
    flow(0, "p0.s0.h0.r0", "p0.s1.h0.r0"),
    flow(1, "p0.s1.h0.r0", "p0.s0.h0.r0"),
    flow(2, "p0.s0.h1.r0", "p0.s1.h1.r0"),
    flow(3, "p0.s0.h0.r1", "p0.s1.h0.r1"),
    flow(4, "p0.s0.h0.r0", "p0.s0.h1.r0"),
)


def test_a_cut_link_fails_once_and_is_repaired_once() -> None:
    planned = PlannedFault("cut", LinkDown("x"), 1000 * MS, 500 * MS)
    assert planned.edges == (PlannedEdge(1000 * MS, FAILURE), PlannedEdge(1500 * MS, REPAIR))
    assert planned.repaired_at_ns == 1500 * MS
    assert PlannedFault("cut", LinkDown("x"), 1000 * MS).repaired_at_ns is None


def test_a_flap_is_down_for_its_duty_of_every_period() -> None:
    edges = LinkFlap("x", 400 * MS, 0.25, 2).edges(1000 * MS, None)
    assert [(e.at_ns // MS, e.kind, e.index) for e in edges] == [
        (1000, FAILURE, 0),
        (1100, REPAIR, 0),
        (1400, FAILURE, 1),
        (1500, REPAIR, 1),
    ]


@given(st.integers(10 * MS, 60_000 * MS), st.floats(0.01, 0.99), st.integers(1, 50), st.integers(0, 10**12))
def test_a_flap_alternates_in_order_of_time_and_ends_repaired(period: int, duty: float, count: int, at: int) -> None:
    edges = LinkFlap("x", period, duty, count).edges(at, None)
    assert [e.kind for e in edges] == [FAILURE, REPAIR] * count
    times = [e.at_ns for e in edges]
    assert times == sorted(set(times))
    assert times[0] == at
    assert times[-1] < at + period * count


def test_a_crashed_tor_takes_all_its_links_with_it(tiny: Fabric) -> None:
    crash = TorCrash("p0.s0.t0.0")
    names = {link.name for link in crash.links_hit(tiny)}
    assert names == {"p0.s0.h0.r0.0", "p0.s0.h1.r0.0", "p0.s0.t0.0-p0.a0.0", "p0.s0.t0.0-p0.a0.1"}
    assert nics_hit(crash, tiny) == {"p0.s0.h0.r0", "p0.s0.h1.r0"}
    assert crash.nodes_hit() == ("p0.s0.t0.0",)


def test_a_target_that_is_not_there_is_an_input_error_with_near_names(tiny: Fabric) -> None:
    with pytest.raises(InputError, match=r"no link .p0\.s0\.h0\.r0\.7. in this fabric; did you mean p0"):
        LinkDown("p0.s0.h0.r0.7").links_hit(tiny)


def test_flows_stand_to_a_cut_link_by_their_ends(tiny: Fabric) -> None:
    assert relations(tiny, [LinkDown("p0.s0.h0.r0.0")], FLOWS) == {
        0: Relation.SENDER,
        1: Relation.RECEIVER,
        2: Relation.NONE,
        3: Relation.NONE,
        4: Relation.SENDER,
    }


def test_flows_of_the_rail_stand_to_a_crashed_tor(tiny: Fabric) -> None:
    found = relations(tiny, [TorCrash("p0.s0.t0.0")], FLOWS)
    assert found == {0: Relation.SENDER, 1: Relation.RECEIVER, 2: Relation.SENDER, 3: Relation.NONE, 4: Relation.BOTH}


def test_flows_that_may_cross_a_link_above_the_tors_are_in_transit(tiny: Fabric) -> None:
    cut = LinkDown("p0.s1.t0.0-p0.a0.1")
    assert transit_flows(tiny, [cut], FLOWS) == (0, 1, 2)
    assert relations(tiny, [cut], FLOWS)[3] is Relation.NONE
    assert transit_flows(tiny, [LinkDown("p0.s0.h0.r0.0")], FLOWS) == ()
