"""Places of second faults: just before and after each event, and around timers; equal states once. Pure.

Changes when places are chosen, left out or spread over a budget in another way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from hpn.failover.analysis.model import EdgeKind
from hpn.scenarios.campaign.plan import FaultStep
from hpn.scenarios.explore.course import TICK_NS, Course, Instant
from hpn.scenarios.explore.labstate import LabState
from hpn.scenarios.explore.seconds import SECONDS, Scene, chosen
from hpn.scenarios.explore.timers import Running, running
from hpn.testbed.fabric.spec import FabricSpec


class Side(StrEnum):
    """Side of an event or of a timer's expiry; ``DURING``: within a timer."""

    BEFORE = "before"
    AFTER = "after"
    DURING = "during"


_MARGIN_NS = 10_000
_ORDER = (Side.BEFORE, Side.DURING, Side.AFTER)


@dataclass(frozen=True, slots=True)
class Spot:
    """Moment of the base run to aim at. ``number``: of the event or timer, in order of time; ``of``: its words."""

    number: int
    at_ns: int
    side: Side
    of: str
    phase: EdgeKind
    digest: str = ""
    room_ns: int = 0  # since the event before

    @property
    def words(self) -> str:
        """Text: 'before lacp attached of p0.s0.h0 r0p0'."""
        return f"{self.side} {self.of}"


@dataclass(frozen=True, slots=True)
class Place:
    """A second fault at a spot. ``due_ns``: after the start of traffic, as a drill file says it."""

    spot: Spot
    second: str
    step: FaultStep
    due_ns: int

    @property
    def name(self) -> str:
        """Name of its drill: 'm012-after-other-port'."""
        return f"m{self.spot.number:03d}-{self.spot.side}-{self.second}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Places that are not tried, and why."""

    words: str
    why: str


@dataclass(frozen=True, slots=True)
class Places:
    """Places that may be tried, those left out, and the distinct states at the spots."""

    tried: tuple[Place, ...]
    left_out: tuple[LeftOut, ...]
    spots: int
    states: int


def spots_of(course: Course, spec: FabricSpec) -> list[Spot]:
    """Return every spot of a course with the digest of its state, in order of time."""
    timers = [*running(course.events, spec, course.end_ns)]
    marks = sorted(_marks(course.instants, timers, course), key=lambda mark: (mark[0], _ORDER.index(mark[1])))
    numbers = {key: at for at, key in enumerate(dict.fromkeys((at_ns, of) for at_ns, _, of in marks))}
    found: list[Spot] = []
    state, heard, times = LabState(), 0, [event.at_ns for event in course.events]
    for at_ns, side, of in marks:
        upto = bisect_left(times, at_ns + 1 if side is Side.AFTER else at_ns)
        state.hear(course.events[heard:upto])
        heard = upto
        digest, before = state.digest(at_ns, timers), bisect_left(times, at_ns)
        room_ns = at_ns - times[before - 1] if before else 0
        found.append(Spot(numbers[at_ns, of], at_ns, side, of, course.phase(at_ns), digest, room_ns))
    return found


def _marks(instants: Sequence[Instant], timers: Sequence[Running], course: Course) -> Iterator[tuple[int, Side, str]]:
    for instant in instants:
        yield from ((instant.at_ns, side, instant.words) for side in (Side.BEFORE, Side.AFTER))
    first_ns = course.injected_ns
    for timer in timers:
        half_ns = (timer.since_ns + timer.due_ns) // 2
        if first_ns < half_ns < min(timer.until_ns, course.end_ns):
            yield half_ns, Side.DURING, timer.words
        if timer.until_ns == timer.due_ns and first_ns < timer.due_ns < course.end_ns:
            yield from ((timer.due_ns, side, f"expiry of {timer.words}") for side in (Side.BEFORE, Side.AFTER))


def places_of(course: Course, scene: Scene, names: Sequence[str]) -> Places:
    """Return the places for the second faults of these names."""
    spots = spots_of(course, scene.fabric.spec)
    left_out: list[LeftOut] = []
    steps: dict[str, FaultStep] = {}
    for name in names:
        step = chosen(scene, SECONDS[name])
        if step is None:
            left_out.append(LeftOut(name, "the fabric or the drill has no such part"))
        else:
            steps[name] = step
    tried = tuple(_distinct(course, spots, steps, left_out))
    return Places(tried, tuple(left_out), len(spots), len({spot.digest for spot in spots}))


_SAME, _CLOSE = "same state as before", "no time of its own"


def _distinct(
    course: Course, spots: Sequence[Spot], steps: Mapping[str, FaultStep], left_out: list[LeftOut]
) -> Iterator[Place]:
    """Yield the places whose state was not met before with the same second fault, and which can be told apart."""
    for name, step in steps.items():
        second, seen, due = SECONDS[name], set[str](), set[int]()
        for spot in spots:
            if spot.phase not in second.phases:
                continue
            due_ns = due_of(course, spot)
            why = _SAME if spot.digest in seen else _CLOSE if due_ns is None or due_ns in due else ""
            if why or due_ns is None:
                left_out.append(LeftOut(f"{name} {spot.words}", why))
                continue
            seen.add(spot.digest)
            due.add(due_ns)
            yield Place(spot, name, step, due_ns)


def due_of(course: Course, spot: Spot) -> int | None:
    """Return the time of a drill file that hits a spot: the next clock reading before or after its event.

    A fault is injected ``Course.latency_ns`` after it is due, give or take some; half of the room before an event is
    kept for that. None where the first fault is injected only then.
    """
    relative_ns = spot.at_ns - course.start_ns
    early_ns = course.latency_ns + max(TICK_NS, min(_MARGIN_NS, spot.room_ns // 2))
    due_ns = relative_ns + TICK_NS if spot.side is Side.AFTER else relative_ns - early_ns
    first_ns = course.at_ns
    if spot.phase is EdgeKind.REPAIR and course.repair_at_ns is not None:
        first_ns = course.repair_at_ns
    return due_ns if due_ns > first_ns else first_ns + TICK_NS if spot.at_ns > first_ns + course.start_ns else None


def spread(places: Sequence[Place], most: int) -> tuple[Place, ...]:
    """Return at most ``most`` places, evenly over events: one of each event, then its next second fault, and so on.

    The first of them are evenly apart too, and a larger ``most`` only adds places.
    """
    ordered = sorted(places, key=lambda place: (place.spot.number, place.spot.at_ns, place.spot.side, place.second))
    events = [[*found] for _, found in groupby(ordered, lambda place: place.spot.number)]
    turns: dict[int, list[Place]] = {}
    for rank, at in enumerate(_halving(len(events))):
        shift = rank % len(events[at])
        for turn, place in enumerate((*events[at][shift:], *events[at][:shift])):
            turns.setdefault(turn, []).append(place)
    return tuple(place for turn in sorted(turns) for place in turns[turn])[:most]


def _halving(count: int) -> list[int]:
    """Return 0 to ``count`` - 1 so that the first ones are evenly apart: 0, 4, 2, 6, 1, 5, 3, 7."""
    digits = max(count - 1, 1).bit_length()
    return sorted(range(count), key=lambda at: f"{at:0{digits}b}"[::-1])
