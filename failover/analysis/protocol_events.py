"""Protocol events after an edge: the first and the last event of each sort. Pure.

Changes when the lab reports a new kind of event. A mark is about the whole lab, a phase about the affected parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hpn.testbed.events import Event, EventKind
from hpn.testbed.routing.pathcontrol.actions import REBOUND, RELEASED, STEERED, STUCK


class ProtocolEvent(StrEnum):
    """A sort of protocol event; the value is its name in a drill file."""

    CARRIER = "carrier"  # a port lost or got its carrier
    LACP = "lacp"  # a port's LACP changed its mind
    LAG = "lag"  # a host's LAG was rewritten
    NEIGHBOUR = "neighbour"  # a ToR learned or lost a host
    ROUTE_WITHDRAWN = "route-withdrawn"  # a host route left a switch
    ROUTE_ADDED = "route-added"  # a host route came to a switch
    PROGRAMMED = "programmed"  # the data plane of a switch that booted has its routes (bgp.fib_lag_ms)
    BGP_DOWN = "bgp-down"
    BGP_UP = "bgp-up"
    UNREACHABLE = "unreachable"  # path control told a host that a destination is gone in a plane
    REACHABLE = "reachable"  # and that it is back
    MOVED = "moved"  # path control gave a queue pair another source port
    REBOUND = "rebound"  # path control had an adapter bind a queue pair to another port
    REMAPPED = "remapped"  # an adapter sends the queue pairs of a port by another one, or by itself again
    STUCK = "stuck"  # it found no source port that would help
    STEERED = "steered"  # path control has a host's LAG send what is for a destination by another port
    RELEASED = "released"  # and by its own choice again
    DIED = "died"  # a queue pair used up its retries


_SAID: Mapping[tuple[EventKind, str], ProtocolEvent] = {
    (EventKind.LINK, "carrier-down"): ProtocolEvent.CARRIER,
    (EventKind.LINK, "carrier-up"): ProtocolEvent.CARRIER,
    (EventKind.LAG, "active"): ProtocolEvent.LAG,
    (EventKind.NEIGHBOUR, "learned"): ProtocolEvent.NEIGHBOUR,
    (EventKind.NEIGHBOUR, "lost"): ProtocolEvent.NEIGHBOUR,
    (EventKind.ROUTE, "host-route-removed"): ProtocolEvent.ROUTE_WITHDRAWN,
    (EventKind.ROUTE, "host-route-added"): ProtocolEvent.ROUTE_ADDED,
    (EventKind.DAEMON, "programmed"): ProtocolEvent.PROGRAMMED,
    (EventKind.BGP, "down"): ProtocolEvent.BGP_DOWN,
    (EventKind.BGP, "established"): ProtocolEvent.BGP_UP,
    (EventKind.PATH, "unreachable"): ProtocolEvent.UNREACHABLE,
    (EventKind.PATH, "reachable"): ProtocolEvent.REACHABLE,
    (EventKind.PATH, "moved"): ProtocolEvent.MOVED,
    (EventKind.PATH, REBOUND): ProtocolEvent.REBOUND,
    (EventKind.LAG, "remapped"): ProtocolEvent.REMAPPED,
    (EventKind.PATH, STUCK): ProtocolEvent.STUCK,
    (EventKind.PATH, STEERED): ProtocolEvent.STEERED,
    (EventKind.PATH, RELEASED): ProtocolEvent.RELEASED,
    (EventKind.QP, "error"): ProtocolEvent.DIED,
}


@dataclass(frozen=True, slots=True)
class EventSpan:
    """The first and the last event of one sort in the window of an edge; who it was, 'node subject what'."""

    mark: ProtocolEvent
    count: int
    first_ns: int
    first_by: str
    last_ns: int
    last_by: str


def marks_between(events: Iterable[Event], start_ns: int, end_ns: int) -> tuple[EventSpan, ...]:
    """Return the marks of [start, end) in order of their first event; ``events`` may be the whole timeline."""
    found: dict[ProtocolEvent, list[Event]] = {}
    for event in sorted(events, key=lambda event: event.at_ns):
        mark = mark_of(event)
        if mark is not None and start_ns <= event.at_ns < end_ns:
            found.setdefault(mark, []).append(event)
    return tuple(_marked(mark, events) for mark, events in found.items())


def mark_of(event: Event) -> ProtocolEvent | None:
    """Return the sort of an event; None for those that no protocol of the fabric makes."""
    return ProtocolEvent.LACP if event.kind is EventKind.LACP else _SAID.get((event.kind, event.what))


def _marked(mark: ProtocolEvent, events: list[Event]) -> EventSpan:
    first, last = events[0], events[-1]
    return EventSpan(mark, len(events), first.at_ns, _name(first), last.at_ns, _name(last))


def _name(event: Event) -> str:
    return f"{event.node} {event.subject} {event.what}"
