"""Faults of NICs, hosts, switches, planes and control planes: what they hit, when they are due, who is in transit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.failover.analysis.model import EdgeKind, Relation
from hpn.failover.faults import (
    AggCrash,
    AggDataplaneDeath,
    BgpReset,
    CoreCrash,
    Fault,
    FlapStorm,
    HostDown,
    LinkDown,
    NicDown,
    PlaneDown,
    PlannedFault,
    Tier,
    TorControlHang,
    TorCrash,
    TorDataplaneDeath,
    TorDrain,
    TorLeave,
    nics_hit,
    settled,
)
from hpn.failover.faults.moments import moments
from hpn.scenarios.drill.blast_radius import relations, transit_flows
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.flows.flow import FlowSpec

MS = 10**6
FAILURE, REPAIR = EdgeKind.FAILURE, EdgeKind.REPAIR
TINY = build(PRESETS["tiny"].spec)
PODS = build(FabricSpec(pods=2, segments=2, hosts=2, rails=1, aggs=2, cores=2))


def flow(number: int, src: str, dst: str) -> FlowSpec:
    return FlowSpec(number, f"{src}>{dst}", src, dst, "", "", 0xC000, 0xC001, 1000.0)


ACROSS = flow(0, "p0.s0.h0.r0", "p0.s1.h0.r0")
OTHER_RAIL = flow(1, "p0.s0.h0.r1", "p0.s1.h0.r1")
IN_RACK = flow(2, "p0.s0.h0.r0", "p0.s0.h1.r0")
FLOWS = (ACROSS, OTHER_RAIL, IN_RACK)


def stand(fabric: Fabric, *faults: Fault) -> list[Relation]:
    return list(relations(fabric, faults, FLOWS).values())


@pytest.mark.parametrize("kind", [TorCrash, TorControlHang, TorDataplaneDeath, TorLeave])
def test_a_fault_of_a_tor_hits_all_its_nics_and_no_other_rail(kind: type[Fault]) -> None:
    fault = kind("p0.s0.t0.0")  # type: ignore[call-arg]  # a protocol does not say how it is made
    assert nics_hit(fault, TINY) == {"p0.s0.h0.r0", "p0.s0.h1.r0"}
    assert stand(TINY, fault) == [Relation.SENDER, Relation.NONE, Relation.BOTH]


def test_a_nic_loses_every_port_and_a_host_every_nic() -> None:
    assert [link.name for link in NicDown("p0.s0.h0.r0").links_hit(TINY)] == ["p0.s0.h0.r0.0", "p0.s0.h0.r0.1"]
    assert nics_hit(HostDown("p0.s0.h0"), TINY) == {"p0.s0.h0.r0", "p0.s0.h0.r1"}
    assert len(HostDown("p0.s0.h0").links_hit(TINY)) == 4
    assert stand(TINY, NicDown("p0.s0.h0.r0")) == [Relation.SENDER, Relation.NONE, Relation.SENDER]
    assert stand(TINY, HostDown("p0.s1.h0")) == [Relation.RECEIVER, Relation.RECEIVER, Relation.NONE]


@pytest.mark.parametrize("fault", [AggCrash("p0.a0.0"), AggDataplaneDeath("p0.a0.0")])
def test_an_agg_hits_no_nic_but_all_that_leaves_a_rack(fault: Fault) -> None:
    assert {link.kind for link in fault.links_hit(TINY)} == {LinkKind.FABRIC}
    assert stand(TINY, fault) == [Relation.TRANSIT, Relation.TRANSIT, Relation.NONE]


def test_a_core_is_crossed_only_between_pods() -> None:
    within, between = flow(0, "p0.s0.h0.r0", "p0.s1.h0.r0"), flow(1, "p0.s0.h0.r0", "p1.s0.h0.r0")
    assert transit_flows(PODS, [CoreCrash("c0.0")], (within, between)) == (1,)
    assert transit_flows(PODS, [AggCrash("p0.a0.0")], (within, between)) == (0, 1)
    assert transit_flows(PODS, [AggCrash("p1.a0.0")], (within, between)) == (1,)


@pytest.mark.parametrize(("ports", "crossing"), [(1, (1,)), (2, (0, 1))])
def test_flows_cross_cores_from_rail_to_rail_or_from_tor_to_tor_of_a_nic(ports: int, crossing: tuple[int, ...]) -> None:
    """With two ports a flow within a rail does so once an end has lost one of them."""
    fabric = build(PRESETS["tiny-same-rail"].spec.model_copy(update={"nic_ports": ports}))
    within, between = flow(0, "p0.s0.h0.r0", "p0.s1.h0.r0"), flow(1, "p0.s0.h0.r0", "p0.s1.h0.r1")
    assert transit_flows(fabric, [CoreCrash("c0.0")], (within, between)) == crossing
    other_rail = next(link.name for link in fabric.links if link.name.startswith("p0.r1.a0-c"))
    assert transit_flows(fabric, [LinkDown(other_rail)], (within,)) == ()


def test_a_plane_is_its_aggs_or_all_its_switches() -> None:
    aggs, everything = PlaneDown("plane0", Tier.AGGS), PlaneDown("plane0", Tier.ALL)
    assert aggs.dying(TINY) == ("p0.a0.0", "p0.a0.1")
    assert len(everything.dying(TINY)) == 6
    assert aggs.nodes_hit() == ()
    assert settled(aggs, TINY).nodes_hit() == ("p0.a0.0", "p0.a0.1")
    assert stand(TINY, aggs) == [Relation.TRANSIT, Relation.TRANSIT, Relation.NONE]
    assert stand(TINY, everything) == [Relation.BOTH] * 3
    names = [link.name for link in everything.links_hit(TINY)]
    assert len(names) == len(set(names)) == len(TINY.links) // 2
    with pytest.raises(InputError, match="no plane 'plane2' in this fabric; write one of plane0, plane1"):
        settled(PlaneDown("plane2", Tier.ALL), TINY)


def test_a_drain_has_three_steps_and_one_boot() -> None:
    planned = PlannedFault("drain", TorDrain("p0.s0.t0.0", 600 * MS), 1000 * MS, 2000 * MS)
    assert [(e.at_ns // MS, e.kind, type(e.part)) for e in planned.edges] == [
        (1000, FAILURE, type(None)),
        (1300, FAILURE, TorLeave),
        (1600, FAILURE, TorCrash),
        (3000, REPAIR, type(None)),
    ]
    assert planned.repaired_at_ns == 3000 * MS


def test_a_reset_session_is_never_repaired_because_it_comes_back_by_itself() -> None:
    planned = PlannedFault("reset", BgpReset("p0.s0.t0.0-p0.a0.0"), 1000 * MS)
    assert [edge.kind for edge in planned.edges] == [FAILURE]
    assert planned.repaired_at_ns is None
    assert stand(TINY, planned.fault) == [Relation.TRANSIT, Relation.NONE, Relation.NONE]


def storm(area: str = "plane0", seed: int = 1, every: int = 500, down: int = 300, duration: int = 3000) -> FlapStorm:
    fabric = build(PRESETS["tiny"].spec.model_copy(update={"seed": seed}))
    return FlapStorm(area, every * MS, down * MS, duration * MS).on(fabric)


def test_a_storm_follows_from_the_seed_alone() -> None:
    assert storm() == storm()
    assert storm(seed=2).flaps != storm().flaps
    assert storm().flaps[0].after_ns == 0


@given(st.integers(0, 1000), st.integers(50, 1000), st.integers(10, 2000), st.integers(100, 5000))
def test_in_a_storm_a_link_goes_down_only_while_it_is_up(seed: int, every: int, down: int, duration: int) -> None:
    edges = storm(seed=seed, every=every, down=down, duration=duration).edges(MS, None)
    assert [edge.at_ns for edge in edges] == sorted(edge.at_ns for edge in edges)
    by_link: dict[str, list[tuple[int, EdgeKind]]] = {}
    for edge in edges:
        assert isinstance(edge.part, LinkDown)
        by_link.setdefault(edge.part.link, []).append((edge.at_ns, edge.kind))
    for found in by_link.values():
        assert [kind for _, kind in found] == [FAILURE, REPAIR] * (len(found) // 2)
        assert all(earlier < later for (earlier, _), (later, _) in pairwise(found))
    assert max(edge.at_ns for edge in edges if edge.kind is FAILURE) < MS + duration * MS


def test_a_long_storm_has_the_flaps_that_its_rate_promises() -> None:
    flaps = storm(area="all", every=300, down=10, duration=30_000).flaps
    assert 70 <= len(flaps) <= 130  # Poisson, mean 100
    assert len({flap.link for flap in flaps}) > 12  # of 16


@pytest.mark.parametrize(("area", "links"), [("all", 16), ("plane1", 8), ("p0.s0.t0.0", 2), ("p0.s0.h0", 4)])
def test_a_storm_may_break_over_a_part_of_the_fabric(area: str, links: int) -> None:
    assert len(storm(area=area).links_hit(TINY)) == links
    assert {flap.link for flap in storm(area=area).flaps} <= {link.name for link in storm(area=area).links_hit(TINY)}


def test_a_storm_with_too_many_flaps_is_refused() -> None:
    with pytest.raises(InputError, match="more than 200 flaps"):
        storm(every=20, down=10, duration=60_000)


def test_faults_of_one_instant_are_one_moment_and_repairs_come_first() -> None:
    one, two = LinkDown("p0.s0.h0.r0.0"), LinkDown("p0.s1.h1.r0.0")
    late = LinkDown("p0.s0.h1.r1.0")
    found = moments(
        [
            PlannedFault("late", late, 3000 * MS),
            PlannedFault("one", one, 1000 * MS, 2000 * MS),
            PlannedFault("two", two, 1000 * MS, 2000 * MS),
        ]
    )
    assert [(m.at_ns // MS, m.kind, [due.planned.id for due in m.due]) for m in found] == [
        (1000, FAILURE, ["one", "two"]),
        (3000, REPAIR, ["one", "two"]),
        (3000, FAILURE, ["late"]),
    ]
    assert stand(TINY, *found[0].faults) == [Relation.SENDER, Relation.NONE, Relation.SENDER]
