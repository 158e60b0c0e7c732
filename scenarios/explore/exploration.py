"""Exploration in its folder: the base run, the places that follow from it, and the runs that are left to make.

Changes when an exploration is planned, stored or resumed in another way. The folder has ``explore.json``, a drill file
for each run below ``drills`` and its run below ``runs``. A run counts as made if it is complete and of the same file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from hpn.results.judge.verdict import Outcome
from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch.kept_runs import DRILLS, RUNS, Claim, KeptRuns
from hpn.scenarios.batch.pool.drills import Made, run_all
from hpn.scenarios.batch.pool.task import Pool
from hpn.scenarios.campaign.plan import FaultSequence
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import queue_pairs_of
from hpn.scenarios.explore.course import Course, course_of
from hpn.scenarios.explore.places import LeftOut, Place, Places, places_of, spread
from hpn.scenarios.explore.seconds import SECONDS, Scene, chosen
from hpn.scenarios.explore.variant import Base, Variant, base_of, variant_of
from hpn.testbed.errors import HpnError, InputError, NoisyError
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import Document
from hpn.testbed.vm.engines import EngineSpec

PLAN, FOUND, SMALLER = "explore.json", "found", "smaller"
ALONE = "alone-"
_TOO_SHORT = "a drill's fault lasts 10 ms or more"
_OVERLAPS = re.compile(r"^timeline\.faults\[.*\) overlaps .* in line \d+: ")
_CLAIM = Claim(PLAN, "an exploration", (DRILLS, RUNS, FOUND, SMALLER))


@dataclass(frozen=True, slots=True)
class _Kept:
    """Identity of the exploration in a folder."""

    drill: str
    engine: str


_KEPT = TypeAdapter(_Kept)


@dataclass(frozen=True, slots=True)
class Exploration:
    """Base drill, where its variants run, and how; ``seconds``: names of the second faults to try."""

    base: Base
    spec: EngineSpec
    out: Path
    seconds: tuple[str, ...]
    most: int

    @property
    def kept(self) -> KeptRuns:
        """Drill files and runs of it."""
        return KeptRuns(self.out)

    @property
    def base_run(self) -> RunFolder:
        """Run of the base drill."""
        return RunFolder(self.kept.folder(self.base.variant.name))

    @property
    def scene(self) -> Scene:
        """The first fault, on its fabric."""
        fabric = build(self.base.drill.topology)
        return Scene(fabric, self.base.drill.timeline.faults[0], queue_pairs_of(self.base.drill, fabric))


@dataclass(frozen=True, slots=True)
class Trial:
    """One variant to run: at a place, or, without one, of the second fault ``alone``."""

    variant: Variant
    second: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Variants of an exploration, what is left out, and what there is to cover."""

    trials: tuple[Trial, ...]
    left_out: tuple[LeftOut, ...]
    course: Course
    places: Places


def exploration_of(
    document: Document, own: Drill, seconds: Sequence[str], most: int, out: Path, spec: EngineSpec
) -> Exploration:
    """Return the exploration of a drill. InputError for one without faults, or that cannot be run alone."""
    if not own.timeline.faults:
        raise InputError(
            f"{document.name}:{document.line(('timeline',))}: {own.name} has no fault; name a drill with one"
        )
    if not spec.virtual_time:
        raise InputError(f"--engine {spec.name}: exact times need a clock that repeats; take one in virtual time")
    _CLAIM.check_place(out)
    return Exploration(base_of(document, own, out / DRILLS), spec, out, tuple(seconds), most)


def claim(explored: Exploration) -> None:
    """Write what the folder holds, or compare it. InputError for another drill or engine."""
    digest = hashlib.sha256(explored.base.variant.text.encode()).hexdigest()[:16]
    try:
        explored.out.mkdir(parents=True, exist_ok=True)
        _CLAIM.take(explored.out, _KEPT, _Kept(digest, explored.spec.name))
    except OSError as error:
        raise InputError(f"cannot explore in {explored.out}: {error.strerror}; choose another --out") from error


def check_base(explored: Exploration) -> None:
    """Raise InputError, or NoisyError, with the reason when the base run is no pass."""
    name, verdict = explored.base.variant.name, explored.base_run.verdict()
    if verdict.outcome is Outcome.PASS:
        return
    reasons = [
        *verdict.reasons,
        *(f"{each.text}: {each.evidence}" for each in verdict.checks if each.outcome is not Outcome.PASS),
    ]
    text = f"{name} by itself ends with {verdict.outcome}: {reasons[0]}"
    raise NoisyError(text) if verdict.outcome is Outcome.INCONCLUSIVE else InputError(f"{text}; mend it first")


def plan_of(explored: Exploration) -> Plan:
    """Return the variants, from the base run. InputError for a damaged run."""
    base, scene = explored.base, explored.scene
    first = scene.first
    course = course_of(explored.base_run, first.at_ns, first.repaired_at_ns)
    places = places_of(course, scene, explored.seconds)
    left_out = [*places.left_out]
    possible = {trial.variant.name: trial for trial in _possible(base, places, left_out)}
    kept = spread([trial.place for trial in possible.values() if trial.place is not None], explored.most)
    trials = [possible[place.name] for place in kept]
    left_out += [
        LeftOut(trial.variant.drill.summary, "--most is reached")
        for trial in possible.values()
        if trial.place not in kept
    ]
    alone = [*_alone(explored, scene, {trial.second for trial in trials}, left_out)]
    return Plan((*alone, *trials), tuple(left_out), course, places)


def _possible(base: Base, places: Places, left_out: list[LeftOut]) -> Iterator[Trial]:
    """Yield the places that make a valid drill."""
    for place in places.tried:
        words = f"{place.second} {place.spot.words}"
        try:
            variant = variant_of(base, place.name, sequence_at(base, place), words)
        except InputError as error:
            left_out.append(LeftOut(words, _problem(error)))
        else:
            yield Trial(variant, place.second, place)


def _problem(error: InputError) -> str:
    """Return why a drill is not valid, without the place in a file that was not written."""
    problem = error.problems[0].partition(": ")[2] or error.problems[0]
    if ".for: " in problem and "out of range" in problem:
        return _TOO_SHORT
    return _OVERLAPS.sub("", problem).partition("; ")[0]


def sequence_at(base: Base, place: Place) -> FaultSequence:
    """Return the base drill's faults and the second one, or the first with its repair at the place."""
    first, *rest = base.sequence.steps
    if SECONDS[place.second].undoes:
        return replace(base.sequence, steps=(replace(first, for_ns=place.due_ns - first.at_ns), *rest))
    return replace(base.sequence, steps=(first, *rest, replace(place.step, at_ns=place.due_ns)))


def _alone(explored: Exploration, scene: Scene, names: Iterable[str], left_out: list[LeftOut]) -> Iterator[Trial]:
    """Yield each second fault without the first, at its time: what that breaks is not of both together."""
    for second in (SECONDS[name] for name in explored.seconds if name in {*names}):
        step = chosen(scene, second)
        if (
            step is None
            or second.undoes
            or (step.kind, step.target) == (scene.first.fault.KIND, scene.first.fault.target)
        ):
            continue
        sequence = FaultSequence(0, (replace(step, at_ns=scene.first.at_ns),))
        try:
            variant = variant_of(explored.base, f"{ALONE}{second.name}", sequence, f"{second.name} alone")
        except InputError as error:
            left_out.append(LeftOut(f"{second.name} alone", _problem(error)))
        else:
            yield Trial(variant, second.name)


def make(
    explored: Exploration, variants: Iterable[Variant], pool: Pool, on_start: Callable[[str, str], None]
) -> Generator[Made, None, None]:
    """Make the runs that are left and yield each when it has ended; ``on_start`` as in ``run_all``."""
    kept = explored.kept
    left = [each for each in variants if not kept.is_made(each)]
    try:
        kept.write(left)
    except OSError as error:
        raise InputError(f"cannot explore in {explored.out}: {error.strerror}; choose another --out") from error
    yield from run_all(pool, kept.requests(left, explored.spec), on_start)


def run_base(explored: Exploration, pool: Pool, on_start: Callable[[str, str], None]) -> None:
    """Make the base run, unless it is there, and check it. Its own errors are raised."""
    for made in make(explored, [explored.base.variant], pool, on_start):
        if isinstance(made.run, HpnError):
            raise made.run
    check_base(explored)
