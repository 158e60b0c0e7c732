"""Protocol events after an edge: the first and the last event of each sort. Pure.

Changes when the lab reports a new kind of event. A mark is about the whole lab, a phase about the affected parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hpn.testbed.events import Event, EventKind
from hpn.testbed.routing.pathcontrol.actions import RELEASED, STEERED, STUCK


class Mark(StrEnum):
    """A sort of protocol event; the value is its name in a drill file."""

    CARRIER = "carrier"  # a port lost or got its carrier
    LACP = "lacp"  # a port's LACP changed its mind
    LAG = "lag"  # a host's LAG was rewritten
    NEIGHBOUR = "neighbour"  # a ToR learned or lost a host
    ROUTE_WITHDRAWN = "route-withdrawn"  # a host route left a switch
    ROUTE_ADDED = "route-added"  # a host route came to a switch
    BGP_DOWN = "bgp-down"
    BGP_UP = "bgp-up"
    UNREACHABLE = "unreachable"  # path control told a host that a destination is gone in a plane
    REACHABLE = "reachable"  # and that it is back
    MOVED = "moved"  # path control gave a queue pair another source port
    STUCK = "stuck"  # it found no source port that would help
    STEERED = "steered"  # path control has a host's LAG send what is for a destination by another port
    RELEASED = "released"  # and by its own choice again
    DIED = "died"  # a queue pair used up its retries


_SAID: Mapping[tuple[EventKind, str], Mark] = {
    (EventKind.LINK, "carrier-down"): Mark.CARRIER,
    (EventKind.LINK, "carrier-up"): Mark.CARRIER,
    (EventKind.LAG, "active"): Mark.LAG,
    (EventKind.NEIGHBOUR, "learned"): Mark.NEIGHBOUR,
    (EventKind.NEIGHBOUR, "lost"): Mark.NEIGHBOUR,
    (EventKind.ROUTE, "host-route-removed"): Mark.ROUTE_WITHDRAWN,
    (EventKind.ROUTE, "host-route-added"): Mark.ROUTE_ADDED,
    (EventKind.BGP, "down"): Mark.BGP_DOWN,
    (EventKind.BGP, "established"): Mark.BGP_UP,
    (EventKind.PATH, "unreachable"): Mark.UNREACHABLE,
    (EventKind.PATH, "reachable"): Mark.REACHABLE,
    (EventKind.PATH, "moved"): Mark.MOVED,
    (EventKind.PATH, STUCK): Mark.STUCK,
    (EventKind.PATH, STEERED): Mark.STEERED,
    (EventKind.PATH, RELEASED): Mark.RELEASED,
    (EventKind.QP, "error"): Mark.DIED,
}


@dataclass(frozen=True, slots=True)
class Marked:
    """The first and the last event of one sort in the window of an edge; who it was, 'node subject what'."""

    mark: Mark
    count: int
    first_ns: int
    first_by: str
    last_ns: int
    last_by: str


def marks_between(events: Iterable[Event], start_ns: int, end_ns: int) -> tuple[Marked, ...]:
    """Return the marks of [start, end) in order of their first event; ``events`` may be the whole timeline."""
    found: dict[Mark, list[Event]] = {}
    for event in sorted(events, key=lambda event: event.at_ns):
        mark = mark_of(event)
        if mark is not None and start_ns <= event.at_ns < end_ns:
            found.setdefault(mark, []).append(event)
    return tuple(_marked(mark, events) for mark, events in found.items())


def mark_of(event: Event) -> Mark | None:
    """Return the sort of an event; None for those that no protocol of the fabric makes."""
    return Mark.LACP if event.kind is EventKind.LACP else _SAID.get((event.kind, event.what))


def _marked(mark: Mark, events: list[Event]) -> Marked:
    first, last = events[0], events[-1]
    return Marked(mark, len(events), first.at_ns, _name(first), last.at_ns, _name(last))


def _name(event: Event) -> str:
    return f"{event.node} {event.subject} {event.what}"
