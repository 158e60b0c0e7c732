"""Phases of an edge from a timeline: each is told by its own events, and says why when it is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.intervals import phase_interval
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import DrillMetrics, Edge, EdgeKind, HitLink, Phase, Phases, Settings
from hpn.failover.analysis.phases import phases_of
from hpn.testbed.events import Event, EventKind
from tests.failover.synthetic import HIT, MS, Dead, S, edge, flow, record

AT = 4 * S
HOST, TOR = "p0.s0.h0", "p0.s0.t0.0"


def event(ms: float, kind: EventKind, node: str, subject: str, what: str) -> Event:
    return Event(AT + int(ms * MS), kind, node, subject, what)


FAILURE = (
    event(-3, EventKind.LINK, HOST, "r0.0", "carrier-down"),  # before the injection: somebody else's
    event(0.1, EventKind.LINK, TOR, "h0", "admin-down"),  # how the lab takes carrier away; not a sign by itself
    event(0.2, EventKind.LINK, TOR, "h0", "carrier-down"),
    event(0.4, EventKind.LINK, HOST, "r0.0", "carrier-down"),
    event(0.5, EventKind.LINK, HOST, "r9.0", "carrier-down"),  # another port
    event(1.4, EventKind.LAG, HOST, "bond0", "active"),
    event(1.9, EventKind.LAG, HOST, "bond0", "active"),
    event(2.0, EventKind.ROUTE, TOR, "10.0.0.1/32", "host-route-removed"),
    event(5.0, EventKind.ROUTE, "p0.a0.0", "10.0.0.1/32", "host-route-removed"),
    event(7.0, EventKind.ROUTE, "p0.a0.0", "10.9.9.9/32", "host-route-added"),  # another NIC
    event(6.0, EventKind.PATH, "p0.s1.h0", "qp 3", "moved"),
    event(8.0, EventKind.PATH, "p0.s1.h0", "qp 4", "moved"),
    event(2000.0, EventKind.ROUTE, TOR, "10.0.0.1/32", "host-route-added"),  # the next edge's
)


def phases(*events: Event, at: Edge | None = None, outage_ms: int = 20) -> Phases:
    return metrics(*events, at=at, outage_ms=outage_ms).edges[0].phases


def metrics(*events: Event, at: Edge | None = None, outage_ms: int = 20) -> DrillMetrics:
    chosen = at or edge(AT, AT + S)
    records = record(flow(), 9 * S, [Dead(AT, AT + outage_ms * MS)])
    return analyse([flow()], *records.tables, events, [chosen], (S, 3 * S), Settings(validation_s=1))


def test_a_destination_that_is_steered_counts_as_what_path_control_did_and_so_does_its_release() -> None:
    def steered(ms: int, what: str) -> Event:
        return Event(AT + ms * MS, EventKind.PATH, HOST, "10.0.0.1", what, {"from_port": "r0p0", "to_port": "r0p1"})

    found = phases(*FAILURE, steered(4, "steered"), steered(12, "released"))
    assert (found.path_first.ms, found.path_last.ms) == (4.0, 12.0)


def test_paths_that_are_chosen_again_count_too_and_a_hosts_own_new_source_port_does_not() -> None:
    def rehomed(ms: int, why: str) -> Event:
        return Event(AT + ms * MS, EventKind.PATH, HOST, "36", "rehomed", {"old_sport": 1, "sport": 2, "why": why})

    found = phases(*FAILURE[:-3], rehomed(100, "rechosen"), rehomed(120, "timeout"))
    assert (found.path_first.ms, found.path_last.ms) == (100.0, 100.0)


def test_a_failure_splits_into_its_phases() -> None:
    found = phases(*FAILURE)
    assert found.detect == Phase(0.2, AT + 2 * MS // 10, f"{TOR} h0 carrier-down")
    assert found.switch == Phase(1.2, AT + 14 * MS // 10, f"{HOST} bond0 active")
    assert found.converge == Phase(5.0, AT + 5 * MS, "p0.a0.0 10.0.0.1/32 host-route-removed")
    assert (found.path_first.ms, found.path_last.ms) == (6.0, 8.0)
    assert found.recover.ms == 20.1
    assert found.recover.by == f"flow {flow().name}"


def test_a_switch_that_lacp_decided_says_how_far_off_its_event_was_stamped() -> None:
    """Linux bonding tells of what its machines decided up to one of their ticks late."""
    detail: dict[str, str | int | float] = {"ports": "r0.1", "late_ms": 100.0, "early_ms": 10.0}
    expired = event(2400, EventKind.LACP, TOR, "h0", "expired")
    active = replace(event(2500, EventKind.LAG, HOST, "bond0", "active"), detail=detail)
    measured = metrics(expired, active, at=edge(AT, AT + 3 * S))
    found = measured.edges[0].phases
    assert (found.switch.ms, found.switch.late_ms, found.switch.early_ms) == (100.0, 100.0, 10.0)
    assert (found.detect.late_ms, found.detect.early_ms) == (0.0, 0.0)
    assert phase_interval("switch", 100.0, measured.edges[0], measured) == pytest.approx((0.0, 110.0), abs=0.01)
    assert phase_interval("detect", 2400.0, measured.edges[0], measured) == pytest.approx((2400, 2400), abs=0.2)


def test_a_switch_that_is_its_own_detection_is_late_for_both_alike() -> None:
    detail: dict[str, str | int | float] = {"ports": "r0.1", "late_ms": 100.0, "early_ms": 10.0}
    active = replace(event(2500, EventKind.LAG, HOST, "bond0", "active"), detail=detail)
    measured = metrics(active, at=edge(AT, AT + 3 * S))
    assert phase_interval("switch", 0.0, measured.edges[0], measured) == pytest.approx((0.0, 10.0), abs=0.01)
    assert phase_interval("detect", 2500.0, measured.edges[0], measured) == pytest.approx((2400, 2510), abs=0.2)


def test_subjects_may_be_written_as_labels_and_events_come_in_any_order() -> None:
    as_label = [
        Event(e.at_ns, e.kind, e.node, f"{e.node}:{e.subject}" if e.kind is EventKind.LINK else e.subject, e.what)
        for e in reversed(FAILURE)
    ]
    assert phases(*as_label).detect.ms == 0.2


def test_lacp_tells_what_carrier_does_not() -> None:
    """A one-way loss or a hung ToR: the carrier stays, LACP runs out."""
    found = phases(
        event(3100, EventKind.LACP, HOST, "r0.0", "expired"),
        event(3101, EventKind.LAG, HOST, "bond0", "active"),
        at=edge(AT, AT + 5 * S),
    )
    assert (found.detect.ms, found.switch.ms) == (3100.0, 1.0)


def test_a_silent_fault_is_detected_by_the_first_end_that_misses_lacpdus() -> None:
    """One-way loss towards the ToR: it expires, three seconds before the host is told by its partner's state."""
    found = phases(
        event(2700, EventKind.LACP, TOR, "h0", "expired"),
        event(2702, EventKind.ROUTE, TOR, "10.0.0.1/32", "host-route-removed"),
        event(5700, EventKind.LACP, HOST, "r0.0", "attached"),
        event(5701, EventKind.LAG, HOST, "bond0", "active"),
        at=edge(AT, AT + 7 * S),
        outage_ms=5705,
    )
    assert (found.detect.ms, found.detect.by) == (2700.0, f"{TOR} h0 expired")
    assert (found.switch.ms, found.converge.ms) == (3001.0, 2702.0)


def test_a_lag_that_is_rewritten_is_a_sign_and_that_of_another_nic_is_none() -> None:
    """The bonding driver drops a port before its LACP states are read."""
    found = phases(
        event(5, EventKind.LAG, HOST, "bond1", "active"),
        event(2400, EventKind.LAG, HOST, "bond0", "active"),
        event(2401, EventKind.LACP, HOST, "r0.0", "expired"),
        at=edge(AT, AT + 5 * S),
    )
    assert (found.detect.ms, found.switch.ms) == (2400.0, 0.0)


def test_above_the_tors_bgp_notices_a_silent_fault() -> None:
    uplink = Edge("up", EdgeKind.FAILURE, 0, AT, AT, AT + 9 * S, (HitLink("t-a", f"{TOR}:u0", "p0.a0.0:d0"),))
    events = [
        event(100, EventKind.BGP, TOR, "u1", "down"),  # another session
        event(7000, EventKind.BGP, "p0.a0.0", "d0", "down"),
        event(8000, EventKind.BGP, TOR, "u0", "down"),
    ]
    found = phases_of(uplink, events, [])
    assert (found.detect.ms, found.detect.by) == (7000.0, "p0.a0.0 d0 down")


def test_the_repair_of_a_silent_fault_is_told_by_the_first_lacpdu() -> None:
    found = phases(
        event(400, EventKind.LACP, TOR, "h0", "current"),
        event(620, EventKind.LAG, HOST, "bond0", "active"),
        at=edge(AT, AT + 2 * S, EdgeKind.REPAIR),
        outage_ms=0,
    )
    assert (found.detect.ms, found.switch.ms) == (400.0, 220.0)


def test_a_repair_is_told_by_the_way_back() -> None:
    found = phases(
        event(0.3, EventKind.LINK, HOST, "r0.0", "carrier-up"),
        event(900, EventKind.LACP, HOST, "r0.0", "distributing"),
        event(901, EventKind.LAG, HOST, "bond0", "active"),
        event(950, EventKind.ROUTE, TOR, "10.0.0.1/32", "host-route-added"),
        at=edge(AT, AT + 2 * S, EdgeKind.REPAIR),
        outage_ms=0,
    )
    assert (found.detect.ms, found.converge.ms) == (0.3, 950.0)
    assert found.switch.ms is not None
    assert round(found.switch.ms, 3) == 900.7


def test_what_did_not_happen_is_none_with_its_reason_never_zero() -> None:
    found = phases(outage_ms=0)
    assert found == Phases(
        Phase(None, reason="nothing that was hit noticed: no link, LACP, LAG, BFD or BGP event there"),
        Phase(None, reason="no hit host rewrote its LAG"),
        Phase(None, reason="no route of a hit NIC changed"),
        Phase(None, reason="path control moved no queue pair"),
        Phase(None, reason="path control moved no queue pair"),
        Phase(None, reason="no flow that is hit lost anything"),
    )
    assert phases(outage_ms=9000).recover.reason == f"1 of 1 flows did not recover, first {flow().name}"


def test_path_control_that_is_off_is_not_told_to_have_moved_nothing() -> None:
    found = phases_of(edge(AT, AT + 5 * S), [], [], path_control=False)
    assert found.path_first.reason == found.path_last.reason == "path control is off"


def test_the_switch_of_many_hosts_is_the_last_and_says_who_is_missing() -> None:
    links = tuple(
        HitLink(f"l{n}", f"h{n}:e0", f"{TOR}:d{n}", f"h{n}.r0", f"h{n}", "bond0", f"10.0.0.{n}") for n in range(3)
    )
    crash = Edge("crash", EdgeKind.FAILURE, 0, AT, AT, AT + S, links, nodes=(TOR,))
    found = phases_of(
        crash,
        [
            event(1, EventKind.LINK, "h0", "e0", "carrier-down"),
            event(2, EventKind.LAG, "h0", "bond0", "active"),
            event(4, EventKind.LAG, "h2", "bond0", "active"),
        ],
        [],
    )
    assert (found.switch.ms, found.switch.reason) == (3.0, "1 of 3 hit LAGs were not rewritten")


def test_above_the_tors_every_route_change_of_the_window_counts() -> None:
    uplink = Edge("up", EdgeKind.FAILURE, 0, AT, AT, AT + S, (HitLink("t-a", f"{TOR}:u0", "p0.a0.0:d0"),))
    found = phases_of(uplink, FAILURE, [])
    assert found.switch.reason == "no LAG is hit"
    assert found.converge.ms == 7.0


def test_hit_is_the_link_of_the_events() -> None:
    assert (HIT.lower, HIT.upper) == (f"{HOST}:r0.0", f"{TOR}:h0")
