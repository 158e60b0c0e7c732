"""Chrome's trace event format, which Perfetto and chrome://tracing open: tracks and their events. Pure.

Changes when the format does (Google's "Trace Event Format" document; Perfetto's importer of JSON). Here a track is a
thread of a process. Times are CLOCK_MONOTONIC ns, written as microseconds since the earliest of them. Slices of one
thread must be nested or disjoint, so those that would overlap get a thread of their own.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hpn.testbed.files.document import shorten

Value = str | int | float | bool | None | list[str]
Args = Mapping[str, Value]

_LONGEST = 300
"""Maximum characters of a text; folders are untrusted input."""
_Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Slice:
    """An event with a duration; a zero duration is shown as 1 ns."""

    begin_ns: int
    end_ns: int
    name: str
    args: Args = field(default_factory=dict)

    @property
    def length_ns(self) -> int:
        """Length in the drawing."""
        return max(self.end_ns - self.begin_ns, 1)


@dataclass(frozen=True, slots=True)
class Instant:
    """An event without a duration; ``everywhere``: a line through all tracks."""

    at_ns: int
    name: str
    args: Args = field(default_factory=dict)
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """Value of a counter from a time on."""

    at_ns: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SlicePosition:
    """Position of a slice, for arrows."""

    pid: int
    tid: int
    at_ns: int


class Trace:
    """Collector of tracks; viewers show processes and threads in the order of their creation."""

    def __init__(self) -> None:
        self._events: list[tuple[int | None, _Json]] = []
        self._processes = 0
        self._threads: dict[int, int] = {}
        self._arrows = 0

    def process(self, name: str) -> int:
        """Add a group of tracks; return its number."""
        self._processes += 1
        pid = self._processes
        self._threads[pid] = 0
        self._name("process", pid, 0, name, pid)
        return pid

    def slices(self, pid: int, name: str, found: Iterable[Slice]) -> list[SlicePosition]:
        """Add a track of slices, or as many as needed; return the position of each slice, in the given order."""
        given = list(found)
        lanes = _lanes(given)
        threads = [
            self._thread(pid, name if lane == 0 else f"{name} ({lane + 1})")
            for lane in range(max(lanes, default=-1) + 1)
        ]
        placed = []
        for each, lane in zip(given, lanes, strict=True):
            place = SlicePosition(pid, threads[lane], each.begin_ns)
            self._add("X", place, each.name, args=_plain(each.args), dur=each.length_ns / 1e3)
            placed.append(place)
        return placed

    def instants(self, pid: int, name: str, found: Iterable[Instant]) -> None:
        """Add a track of instants; none without any."""
        tid = None
        for each in found:
            tid = self._thread(pid, name) if tid is None else tid
            scope = "g" if each.everywhere else "t"
            self._add("i", SlicePosition(pid, tid, each.at_ns), each.name, args=_plain(each.args), s=scope)

    def counter(self, pid: int, name: str, found: Iterable[Count]) -> None:
        """Add a counter; repeated values are written once."""
        before: Mapping[str, float] | None = None
        for each in found:
            if each.values and each.values != before:
                self._add("C", SlicePosition(pid, 0, each.at_ns), name, args=dict(each.values))
                before = each.values

    def arrow(self, cause: SlicePosition, effect: SlicePosition) -> None:
        """Add an arrow from the start of a slice to that of another, unless the second is earlier."""
        if effect.at_ns < cause.at_ns:
            return
        self._arrows += 1
        self._add("s", cause, "leads to", id=self._arrows)
        self._add("f", effect, "leads to", id=self._arrows, bp="e")

    def document(self, about: Mapping[str, Value]) -> bytes:
        """Return the file; ``about``: facts of the trace. It is written in lines, so that people can read it."""
        origin_ns = min((at_ns for at_ns, _ in self._events if at_ns is not None), default=0)
        other = {**_plain(about), "origin_ns": origin_ns}
        lines = ",\n".join(json.dumps(event, allow_nan=False) for event in self._written(origin_ns))
        head = json.dumps({"displayTimeUnit": "ms", "otherData": other}, allow_nan=False)
        return f'{head[:-1]}, "traceEvents": [\n{lines}\n]}}\n'.encode()

    def _written(self, origin_ns: int) -> Iterator[_Json]:
        for at_ns, event in self._events:
            yield event if at_ns is None else {**event, "ts": (at_ns - origin_ns) / 1e3}

    def _thread(self, pid: int, name: str) -> int:
        self._threads[pid] += 1
        tid = self._threads[pid]
        self._name("thread", pid, tid, name, tid)
        return tid

    def _name(self, what: str, pid: int, tid: int, name: str, order: int) -> None:
        for key, args in (("name", {"name": _text(name)}), ("sort_index", {"sort_index": order})):
            self._events.append((None, {"ph": "M", "name": f"{what}_{key}", "pid": pid, "tid": tid, "args": args}))

    def _add(self, phase: str, place: SlicePosition, name: str, **more: object) -> None:
        event = {"ph": phase, "name": _text(name), "cat": "hpn", "pid": place.pid, "tid": place.tid, **more}
        self._events.append((place.at_ns, event))


def _lanes(found: Sequence[Slice]) -> list[int]:
    """Return a lane number for each slice, so that slices of one lane do not overlap; use as few lanes as possible."""
    lanes = [0] * len(found)
    busy: list[tuple[int, int]] = []  # end and lane
    free: list[int] = []
    for at in sorted(range(len(found)), key=lambda at: (found[at].begin_ns, found[at].end_ns)):
        each = found[at]
        while busy and busy[0][0] <= each.begin_ns:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lanes[at] = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (each.begin_ns + each.length_ns, lanes[at]))
    return lanes


def _plain(args: Args) -> dict[str, Value]:
    return {_text(key): _text(value) if isinstance(value, str) else value for key, value in args.items()}


def _text(text: str) -> str:
    """Return text with control characters escaped, truncated to a readable length."""
    return shorten(text, _LONGEST, quoted=False)
