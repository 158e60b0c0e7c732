"""Answer of an exploration from its run folders: rows and coverage. Pure but for reading them.

Changes when a row takes another figure from a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hpn.results.run.folder import RunFolder
from hpn.scenarios.campaign.result import Invariant
from hpn.scenarios.explore.course import Course
from hpn.scenarios.explore.exploration import Exploration, Plan, Trial
from hpn.scenarios.explore.judge import Judged, divergence, judge
from hpn.scenarios.explore.places import Place, Side
from hpn.testbed.errors import HpnError, NoisyError
from hpn.testbed.events import Event, EventKind


class Told(StrEnum):
    """Outcome of a variant."""

    HOLDS = "holds"
    BREAKS = "breaks"
    BREAKS_ALONE = "breaks alone"  # so does the second fault without the first
    INCONCLUSIVE = "inconclusive"
    DIVERGED = "diverged"
    NO_RUN = "no run"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Row:
    """One variant. ``off_ns``: from the event to the second fault's injection; None without an event.

    ``landed``: the state at the injection was the one aimed at. ``diverged``: how it was not the base run before.
    """

    name: str
    second: str
    place: str
    phase: str
    told: Told
    why: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    off_ns: int | None = None
    landed: bool = False
    digest: str = ""
    diverged: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A violation made small. ``file``: the drill; ``repeats``: two runs of it were equal to the byte."""

    name: str
    broken: tuple[str, ...]
    faults: str
    file: str
    runs: int
    repeats: bool
    alike: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage: moments and timers of the base run, states there, and pairs of event and second fault."""

    instants: int
    spots: int
    states: int
    places: int
    run: int
    landed: int
    states_run: int
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of an exploration so far."""

    drill: str
    topology: str
    engine: str
    rows: tuple[Row, ...]
    coverage: Coverage
    left_out: tuple[tuple[str, str], ...] = ()
    found: tuple[Found, ...] = ()

    @property
    def breaking(self) -> tuple[Row, ...]:
        """Rows that break an invariant."""
        return tuple(row for row in self.rows if row.told in {Told.BREAKS, Told.BREAKS_ALONE})

    @property
    def exit_code(self) -> int:
        """1 when something broke, else 4 when a run diverged, was inconclusive or is missing, otherwise 0."""
        if self.breaking:
            return HpnError.exit_code
        return NoisyError.exit_code if any(row.told is not Told.HOLDS for row in self.rows) else 0


def judged_of(explored: Exploration, trial: Trial, course: Course) -> Judged:
    """Return the answer of one run. InputError for a damaged run folder."""
    run = RunFolder(explored.kept.folder(trial.variant.name))
    found = judge(explored.base, trial.variant, run)
    if trial.place is None:
        return found
    events = sorted(run.events(), key=lambda event: event.at_ns)
    due_ns = course.start_ns + trial.place.due_ns
    second = next((e.at_ns for e in events if e.kind is EventKind.FAULT and e.at_ns >= due_ns), 0)
    apart = divergence(course.events, events, course.start_ns, due_ns)
    return Judged(found.violations, found.doubts, apart, second)


def answer_of(
    explored: Exploration, plan: Plan, refused: Mapping[str, HpnError], found: Sequence[Found] = ()
) -> Answer:
    """Return the answer so far; ``refused``: errors of runs by name. InputError for a damaged run folder."""
    rows = tuple(_rows(explored, plan, refused))
    of_places = [row for row in rows if row.digest and row.told not in {Told.NO_RUN, Told.WAITING}]
    left_out = tuple((each.words, each.why) for each in plan.left_out)
    counts: dict[str, int] = {}
    for _, why in left_out:
        counts[why] = counts.get(why, 0) + 1
    coverage = Coverage(
        instants=len(plan.course.instants),
        spots=plan.places.spots,
        states=plan.places.states,
        places=sum(trial.place is not None for trial in plan.trials),
        run=len(of_places),
        landed=sum(row.landed for row in of_places),
        states_run=len({row.digest for row in of_places}),
        left_out=counts,
    )
    topology = explored.base.drill.topology.name
    return Answer(explored.base.variant.name, topology, explored.spec.name, rows, coverage, left_out, tuple(found))


def _rows(explored: Exploration, plan: Plan, refused: Mapping[str, HpnError]) -> Iterator[Row]:
    alone: dict[str, frozenset[Invariant]] = {}
    for trial in plan.trials:
        name = trial.variant.name
        if name in refused:
            yield _row(trial, Told.NO_RUN, (str(refused[name]),))
        elif explored.kept.is_made(trial.variant):
            judged = judged_of(explored, trial, plan.course)
            if trial.place is None:
                alone[trial.second] = judged.broken
            yield _judged(explored, trial, judged, plan.course, alone.get(trial.second, frozenset()))
        else:
            yield _row(trial, Told.WAITING, ())


def _judged(explored: Exploration, trial: Trial, judged: Judged, course: Course, alone: frozenset[Invariant]) -> Row:
    why = tuple(f"{each.invariant}: {each.text}" for each in judged.violations)
    told = Told.HOLDS
    if judged.broken:  # whatever came before: it happened
        told = Told.BREAKS_ALONE if trial.place is None or judged.broken <= alone else Told.BREAKS
    elif judged.diverged:
        told, why = Told.DIVERGED, (judged.diverged,)
    elif judged.doubts:
        told, why = Told.INCONCLUSIVE, judged.doubts
    row = _row(trial, told, why, tuple(sorted(judged.broken)))
    if trial.place is None:
        return row
    events = RunFolder(explored.kept.folder(trial.variant.name)).events()
    return Row(
        row.name, row.second, row.place, row.phase, told, why, row.broken,
        off_ns=judged.injected_ns - trial.place.spot.at_ns,
        landed=_landed(course, trial.place, events, judged.injected_ns),
        diverged=judged.diverged,
        digest=row.digest,
    )  # fmt: skip


def _row(trial: Trial, told: Told, why: tuple[str, ...], broken: tuple[str, ...] = ()) -> Row:
    place = trial.place
    if place is None:
        return Row(trial.variant.name, trial.second, "alone", "", told, why, broken)
    spot = place.spot
    return Row(trial.variant.name, trial.second, spot.words, spot.phase, told, why, broken, digest=spot.digest)


_APART = frozenset({EventKind.PHASE, EventKind.FAULT})


def _landed(course: Course, place: Place, events: Iterable[Event], injected_ns: int) -> bool:
    """Return True if just the events that should precede the second fault did."""
    end_ns = place.spot.at_ns + (place.spot.side is Side.AFTER)
    wanted = sum(event.at_ns < end_ns and event.kind not in _APART for event in course.events)
    return wanted == sum(event.at_ns < injected_ns and event.kind not in _APART for event in events)
