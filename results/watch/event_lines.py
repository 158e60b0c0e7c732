"""Incoming timeline of a lab: a line per event for logs; for screens simultaneous events in one line. Pure.

A ToR that crashes causes a hundred events within a few ms. A screen shows 'carrier-down x16' and as many port names as
fit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from hpn.results.text.printable import printable
from hpn.testbed.events import Event, EventKind
from hpn.testbed.routing.pathcontrol.actions import STUCK

_TOGETHER_NS = 250_000_000
_KEPT = 200
_LOOK_BACK = 3
_WEIGHTS = {"fault": 0, "daemon": 0, STUCK: 0, "lacp": 2, "neighbour": 3, "route": 3}
"""Weights of events by kind or name: lower ones are shown longer; the default is 1."""


@dataclass(frozen=True, slots=True)
class HeardEvent:
    """An event from the control socket, made safe for a terminal."""

    at_ns: int
    kind: str
    what: str
    where: str
    detail: str

    @classmethod
    def of(cls, event: Mapping[str, object]) -> HeardEvent:
        """Return the event of its JSON; missing fields are ''."""
        kind, what, node, subject = (str(event.get(key) or "") for key in ("kind", "what", "node", "subject"))
        at_ns, detail = event.get("at_ns"), event.get("detail")
        more = " ".join(f"{key}={value}" for key, value in detail.items()) if isinstance(detail, Mapping) else ""
        where = f"{node}:{subject}" if node and subject else node or subject
        told = (printable(text) for text in (kind, what, f"{node} ({subject})" if kind == "fault" else where, more))
        return cls(at_ns if isinstance(at_ns, int) else 0, *told)


@dataclass(slots=True)
class _Together:
    first: HeardEvent
    where: list[str] = field(default_factory=list)


class EventLines:
    """Latest events of a lab. ``offset_ns``: added to CLOCK_MONOTONIC to get the time of day."""

    def __init__(self, offset_ns: int) -> None:
        self._offset_ns = offset_ns
        self._groups: deque[_Together] = deque(maxlen=_KEPT)

    def hear(self, events: Iterable[HeardEvent]) -> None:
        """Add incoming events."""
        for event in events:
            group = next((each for each in reversed(self._groups) if _belongs(event, each.first)), None)
            if group is None:
                group = _Together(event)
                self._groups.append(group)
            group.where.append(f"{event.where} {event.detail}".strip())

    def last(self, count: int) -> list[str]:
        """Return ``count`` lines, the newest last: the most important of the last few times as many, causes first."""
        recent = list(self._groups)[-_LOOK_BACK * count :] if count > 0 else []
        by_weight = sorted(range(len(recent)), key=lambda at: (_weight(recent[at].first), -at))
        return [self._grouped(recent[at]) for at in sorted(by_weight[:count])]

    def line(self, event: HeardEvent) -> str:
        """Return one event as a line of a log."""
        return f"{self.clock(event.at_ns)} {event.kind} {event.what} {event.where} {event.detail}".rstrip()

    def clock(self, at_ns: int) -> str:
        """Return the time of day, in ms, of a time of the lab's clock."""
        return datetime.fromtimestamp((at_ns + self._offset_ns) / 1e9).strftime("%H:%M:%S.%f")[:-3]

    def _grouped(self, group: _Together) -> str:
        times = f"x{len(group.where)}" if len(group.where) > 1 else ""
        what = f"{group.first.kind} {group.first.what} {times}".rstrip()
        return f"{self.clock(group.first.at_ns)}  {what:26}  {', '.join(group.where)}"


def stuck_line(events: Iterable[Event]) -> str:
    """Return one line with the queue pairs that path control could not move; '' for none."""
    found = [event for event in events if event.kind is EventKind.PATH and event.what == STUCK]
    if not found:
        return ""
    first = found[0]
    detail = " ".join(f"{key}={value}" for key, value in first.detail.items())
    times = f"x{len(found)}, first " if len(found) > 1 else ""
    return f"{EventKind.PATH} {STUCK} {times}{first.node}:{first.subject} {detail}".rstrip()


def _weight(event: HeardEvent) -> int:
    return _WEIGHTS.get(event.what, _WEIGHTS.get(event.kind, 1))


def _belongs(event: HeardEvent, first: HeardEvent) -> bool:
    return (event.kind, event.what) == (first.kind, first.what) and event.at_ns - first.at_ns < _TOGETHER_NS
