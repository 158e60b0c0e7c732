"""Marks: the first and last event of each sort inside a window."""

from __future__ import annotations

from hpn.failover.analysis.protocol_events import EventSpan, ProtocolEvent, mark_of, marks_between
from hpn.testbed.events import Event, EventKind

MS = 10**6


def event(at_ms: float, kind: EventKind, what: str, node: str = "p0.s0.h0") -> Event:
    return Event(int(at_ms * MS), kind, node, "x", what)


def test_each_sort_of_event_has_a_first_and_a_last() -> None:
    events = [
        event(7, EventKind.LINK, "carrier-down", "p0.s0.t0.0"),
        event(5, EventKind.LINK, "carrier-down"),
        event(6, EventKind.LACP, "expired"),
        event(8, EventKind.LAG, "active"),
    ]
    assert marks_between(events, 0, 10 * MS) == (
        EventSpan(ProtocolEvent.CARRIER, 2, 5 * MS, "p0.s0.h0 x carrier-down", 7 * MS, "p0.s0.t0.0 x carrier-down"),
        EventSpan(ProtocolEvent.LACP, 1, 6 * MS, "p0.s0.h0 x expired", 6 * MS, "p0.s0.h0 x expired"),
        EventSpan(ProtocolEvent.LAG, 1, 8 * MS, "p0.s0.h0 x active", 8 * MS, "p0.s0.h0 x active"),
    )


def test_a_window_holds_its_start_and_not_its_end() -> None:
    events = [event(at_ms, EventKind.PATH, "moved") for at_ms in (1, 2, 3)]
    (found,) = marks_between(events, 1 * MS, 3 * MS)
    assert (found.count, found.first_ns, found.last_ns) == (2, 1 * MS, 2 * MS)


def test_what_the_injector_and_the_drill_say_is_no_mark() -> None:
    said = [(EventKind.FAULT, "inject"), (EventKind.PHASE, "healthy"), (EventKind.DAEMON, "started")]
    assert [mark_of(event(0, kind, what)) for kind, what in said] == [None] * 3
    assert mark_of(event(0, EventKind.LINK, "admin-down")) is None
    assert mark_of(event(0, EventKind.ROUTE, "host-route-removed")) is ProtocolEvent.ROUTE_WITHDRAWN
    assert mark_of(event(0, EventKind.QP, "error")) is ProtocolEvent.DIED
