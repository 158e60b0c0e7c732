"""State of a lab at a time, from the events before it, and its digest. Pure.

Changes when an event tells another part of the state. Equal digests mean: every LACP port, LAG, host route, session,
daemon and queue pair is in the same state, and every timer that is known to run is in the same tenth of its time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from hpn.scenarios.explore.timers import Running
from hpn.testbed.events import Event, EventKind
from hpn.testbed.lag.states import Mux, Rx, Selected

_MACHINES = {word.value: machine.__name__ for machine in (Rx, Mux, Selected) for word in machine}
_DIGITS = 16

Key = tuple[str, ...]


def told(event: Event) -> tuple[Key, str] | None:
    """Return what an event says of the state: a part of it and its value; None if nothing."""
    place = (event.kind.value, event.node, event.subject)
    match event.kind:
        case EventKind.LACP:
            machine = _MACHINES.get(event.what)
            return None if machine is None else ((*place, machine), event.what)
        case EventKind.LINK:
            side, _, value = event.what.partition("-")
            return (*place, side), value
        case EventKind.LAG:
            return place, str(event.detail.get("ports", event.what))
        case EventKind.ROUTE:
            return place, f"{event.what} {event.detail.get('paths', '')}"
        case EventKind.NEIGHBOUR:
            return (*place, str(event.detail.get("port", ""))), event.what
        case EventKind.PATH:
            if "to_port" in event.detail:
                return place, f"{event.detail['to_port']} {event.detail.get('sport', '')}"
            return (*place, str(event.detail.get("port", ""))), event.what
        case EventKind.FAULT:
            return place, "active" if event.what.startswith("inject") else "over"
        case EventKind.PHASE | EventKind.JOB | EventKind.CLIENT:
            return None
    return place, event.what


class LabState:
    """State that events built up, in order."""

    def __init__(self) -> None:
        self._parts: dict[Key, str] = {}

    def hear(self, events: Iterable[Event]) -> None:
        """Follow events."""
        for event in events:
            found = told(event)
            if found is not None:
                self._parts[found[0]] = found[1]

    def digest(self, at_ns: int, timers: Iterable[Running]) -> str:
        """Return the digest of the state at a time; ``timers``: all of the run."""
        phases = sorted(
            f"{each.words} {each.tenth(at_ns)}" for each in timers if each.since_ns < at_ns <= each.until_ns
        )
        parts = sorted(f"{' '.join(key)} {value}" for key, value in self._parts.items())
        return hashlib.sha256("\n".join((*parts, "", *phases)).encode()).hexdigest()[:_DIGITS]
