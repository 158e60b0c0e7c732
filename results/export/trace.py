"""Chrome's trace event format, which Perfetto and chrome://tracing open: tracks, and what happens on them. Pure.

Changes when the format is written otherwise (Google's "Trace Event Format" document; Perfetto's importer of JSON). Here
a track is a thread of a process. Times are CLOCK_MONOTONIC ns and are written as microseconds since the earliest of
them. Slices of one thread must lie in or beside each other, so those that would cross get a thread of their own.
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
"""Characters of any text; a folder may be anybody's."""
_Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Slice:
    """Something that lasts; one that takes no time is shown as 1 ns."""

    begin_ns: int
    end_ns: int
    name: str
    args: Args = field(default_factory=dict)

    @property
    def length_ns(self) -> int:
        """How long it is drawn."""
        return max(self.end_ns - self.begin_ns, 1)


@dataclass(frozen=True, slots=True)
class Instant:
    """Something that happens; ``everywhere``: a line through all tracks."""

    at_ns: int
    name: str
    args: Args = field(default_factory=dict)
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """The value of a counter from a moment on."""

    at_ns: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a slice lies, for arrows."""

    pid: int
    tid: int
    at_ns: int


class Trace:
    """Collects tracks; processes and threads are shown in the order in which they are made."""

    def __init__(self) -> None:
        self._events: list[tuple[int | None, _Json]] = []
        self._processes = 0
        self._threads: dict[int, int] = {}
        self._arrows = 0

    def process(self, name: str) -> int:
        """A group of tracks; its number."""
        self._processes += 1
        pid = self._processes
        self._threads[pid] = 0
        self._name("process", pid, 0, name, pid)
        return pid

    def slices(self, pid: int, name: str, found: Iterable[Slice]) -> list[Placed]:
        """A track of slices, or as many as it takes; where each lies, in the order given."""
        given = list(found)
        lanes = _lanes(given)
        threads = [
            self._thread(pid, name if lane == 0 else f"{name} ({lane + 1})")
            for lane in range(max(lanes, default=-1) + 1)
        ]
        placed = []
        for each, lane in zip(given, lanes, strict=True):
            place = Placed(pid, threads[lane], each.begin_ns)
            self._add("X", place, each.name, args=_plain(each.args), dur=each.length_ns / 1e3)
            placed.append(place)
        return placed

    def instants(self, pid: int, name: str, found: Iterable[Instant]) -> None:
        """A track of instants; none without any."""
        tid = None
        for each in found:
            tid = self._thread(pid, name) if tid is None else tid
            scope = "g" if each.everywhere else "t"
            self._add("i", Placed(pid, tid, each.at_ns), each.name, args=_plain(each.args), s=scope)

    def counter(self, pid: int, name: str, found: Iterable[Count]) -> None:
        """A counter; what does not change is written once."""
        before: Mapping[str, float] | None = None
        for each in found:
            if each.values and each.values != before:
                self._add("C", Placed(pid, 0, each.at_ns), name, args=dict(each.values))
                before = each.values

    def arrow(self, cause: Placed, effect: Placed) -> None:
        """An arrow from the begin of a slice to that of another, which is not earlier."""
        if effect.at_ns < cause.at_ns:
            return
        self._arrows += 1
        self._add("s", cause, "leads to", id=self._arrows)
        self._add("f", effect, "leads to", id=self._arrows, bp="e")

    def document(self, about: Mapping[str, Value]) -> bytes:
        """The file; ``about`` the whole. Lines, so that what is read by people is readable."""
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

    def _add(self, phase: str, place: Placed, name: str, **more: object) -> None:
        event = {"ph": phase, "name": _text(name), "cat": "hpn", "pid": place.pid, "tid": place.tid, **more}
        self._events.append((place.at_ns, event))


def _lanes(found: Sequence[Slice]) -> list[int]:
    """A number for each slice, so that those of one number do not overlap; as few numbers as that takes."""
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
    """As it may be shown: control characters escaped, no longer than anybody reads."""
    return shorten(text, _LONGEST, quoted=False)
