"""A lab's timeline as it comes in: one line an event for logs; for a screen what happened together in one line. Pure.

A ToR that crashes is a hundred events within a few ms: a screen says 'carrier-down x16' and names as many ports as fit.
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
"""Kinds of events, or what happened: the lower, the longer they are shown; 1 where nothing is said."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An event as the control socket tells it, made safe for a terminal."""

    at_ns: int
    kind: str
    what: str
    where: str
    detail: str

    @classmethod
    def of(cls, event: Mapping[str, object]) -> Heard:
        """From its JSON; what is missing is ''."""
        kind, what, node, subject = (str(event.get(key) or "") for key in ("kind", "what", "node", "subject"))
        at_ns, detail = event.get("at_ns"), event.get("detail")
        more = " ".join(f"{key}={value}" for key, value in detail.items()) if isinstance(detail, Mapping) else ""
        where = f"{node}:{subject}" if node and subject else node or subject
        told = (printable(text) for text in (kind, what, f"{node} ({subject})" if kind == "fault" else where, more))
        return cls(at_ns if isinstance(at_ns, int) else 0, *told)


@dataclass(slots=True)
class _Together:
    first: Heard
    where: list[str] = field(default_factory=list)


class News:
    """The last events of a lab. ``offset_ns``: what to add to CLOCK_MONOTONIC for the time of day."""

    def __init__(self, offset_ns: int) -> None:
        self._offset_ns = offset_ns
        self._groups: deque[_Together] = deque(maxlen=_KEPT)

    def hear(self, events: Iterable[Heard]) -> None:
        """Take what came in."""
        for event in events:
            group = next((each for each in reversed(self._groups) if _belongs(event, each.first)), None)
            if group is None:
                group = _Together(event)
                self._groups.append(group)
            group.where.append(f"{event.where} {event.detail}".strip())

    def last(self, count: int) -> list[str]:
        """So many lines, the newest last: of the last few times as many what matters most, causes before the rest."""
        recent = list(self._groups)[-_LOOK_BACK * count :] if count > 0 else []
        by_weight = sorted(range(len(recent)), key=lambda at: (_weight(recent[at].first), -at))
        return [self._grouped(recent[at]) for at in sorted(by_weight[:count])]

    def line(self, event: Heard) -> str:
        """One event for a log."""
        return f"{self.clock(event.at_ns)} {event.kind} {event.what} {event.where} {event.detail}".rstrip()

    def clock(self, at_ns: int) -> str:
        """The time of day of a moment of the lab's clock, in ms."""
        return datetime.fromtimestamp((at_ns + self._offset_ns) / 1e9).strftime("%H:%M:%S.%f")[:-3]

    def _grouped(self, group: _Together) -> str:
        times = f"x{len(group.where)}" if len(group.where) > 1 else ""
        what = f"{group.first.kind} {group.first.what} {times}".rstrip()
        return f"{self.clock(group.first.at_ns)}  {what:26}  {', '.join(group.where)}"


def stuck_line(events: Iterable[Event]) -> str:
    """The queue pairs that path control could not move, of these events, in one line; '' for none."""
    found = [event for event in events if event.kind is EventKind.PATH and event.what == STUCK]
    if not found:
        return ""
    first = found[0]
    detail = " ".join(f"{key}={value}" for key, value in first.detail.items())
    times = f"x{len(found)}, first " if len(found) > 1 else ""
    return f"{EventKind.PATH} {STUCK} {times}{first.node}:{first.subject} {detail}".rstrip()


def _weight(event: Heard) -> int:
    return _WEIGHTS.get(event.what, _WEIGHTS.get(event.kind, 1))


def _belongs(event: Heard, first: Heard) -> bool:
    return (event.kind, event.what) == (first.kind, first.what) and event.at_ns - first.at_ns < _TOGETHER_NS
