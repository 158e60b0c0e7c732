"""Smallest drill that breaks the same invariant, found by runs, and shown to repeat to the byte.

Changes when findings are grouped or made small in another way. Every candidate's run is kept, so that the same command
goes on after an interruption.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch.kept_runs import DRILLS
from hpn.scenarios.batch.pool.task import Pool
from hpn.scenarios.campaign.plan import FaultSequence
from hpn.scenarios.campaign.shrink import shrink
from hpn.scenarios.explore.answer import Found, Row, Told
from hpn.scenarios.explore.exploration import FOUND, SMALLER, Exploration, Plan, Trial, make, sequence_at
from hpn.scenarios.explore.judge import judge
from hpn.scenarios.explore.steps import sequence_of
from hpn.scenarios.explore.variant import Variant, variant_of
from hpn.testbed.errors import HpnError, InputError

MOST_TRIES = 12
_ROUND_NS = (10**8, 10**7, 10**6)
"""Times of a small drill are tried in steps of 100, 10 and 1 ms."""
_SAME = ("events.jsonl", "flows.jsonl", "metrics.json", "verdict.json")
"""Files of a run that have no wall time."""
_DIGITS = 12

OnStart = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Group:
    """Variants that break the same invariants with the same second fault; the first of them is made small."""

    trial: Trial
    broken: tuple[str, ...]
    alike: tuple[str, ...]


def groups_of(plan: Plan, rows: Iterable[Row]) -> list[Group]:
    """Return the groups of what broke, in the order of the rows; a second fault that breaks alone comes first."""
    trials = {trial.variant.name: trial for trial in plan.trials}
    found: dict[tuple[tuple[str, ...], str], list[Row]] = {}
    for row in rows:
        if row.told in {Told.BREAKS, Told.BREAKS_ALONE}:
            found.setdefault((row.broken, row.second), []).append(row)
    return [
        Group(trials[first.name], broken, tuple(row.name for row in more))
        for (broken, _), (first, *more) in found.items()
    ]


def smallest(explored: Exploration, group: Group, pool: Pool, on_start: OnStart, tries: int = MOST_TRIES) -> Found:
    """Return the smallest drill of a group, written to ``found``, after at most ``tries`` runs, and two of itself."""
    apart = _in(explored, SMALLER)
    runs = 0

    def fails(candidate: FaultSequence) -> bool:
        nonlocal runs
        runs += 1
        variant = _variant(apart, candidate)
        return bool(set(_broken(apart, variant, pool, on_start)) & set(group.broken))

    def valid(candidate: FaultSequence) -> bool:
        try:
            _variant(apart, candidate)
        except InputError:
            return False
        return True

    found = shrink(_sequence(explored, group.trial), fails, valid, {}, tries)
    found = _rounded(found, fails, valid)
    name = group.trial.variant.name
    home = _in(explored, FOUND)
    variant = variant_of(home.base, name, found, f"breaks '{group.broken[0]}': {found.words}")
    repeats = _repeats(home, variant, pool, on_start)
    file = home.kept.drill_file(name).relative_to(explored.out).as_posix()
    return Found(name, group.broken, found.words, file, runs + 2, repeats, group.alike)


def _in(explored: Exploration, folder: str) -> Exploration:
    """Return the exploration with drills and runs in a folder below its own."""
    out = explored.out / folder
    return replace(explored, out=out, base=replace(explored.base, folder=out / DRILLS))


def _sequence(explored: Exploration, trial: Trial) -> FaultSequence:
    if trial.place is None:
        return sequence_of(trial.variant.drill)
    return sequence_at(explored.base, trial.place)


def _variant(explored: Exploration, sequence: FaultSequence) -> Variant:
    digest = hashlib.sha256(repr(sequence.steps).encode()).hexdigest()[:_DIGITS]
    return variant_of(explored.base, f"s-{digest}", sequence, sequence.words)


def _broken(explored: Exploration, variant: Variant, pool: Pool, on_start: OnStart) -> Sequence[str]:
    for made in make(explored, [variant], pool, on_start):
        if isinstance(made.run, HpnError):
            return ()
    return sorted(judge(explored.base, variant, RunFolder(explored.kept.folder(variant.name))).broken)


def _rounded(
    sequence: FaultSequence, fails: Callable[[FaultSequence], bool], valid: Callable[[FaultSequence], bool]
) -> FaultSequence:
    """Return the sequence with the roundest times that still fails."""
    for step_ns in _ROUND_NS:
        candidate = replace(
            sequence,
            steps=tuple(
                replace(
                    step,
                    at_ns=round(step.at_ns / step_ns) * step_ns,
                    for_ns=None if step.for_ns is None else round(step.for_ns / step_ns) * step_ns,
                )
                for step in sequence.steps
            ),
        )
        if candidate == sequence:
            return sequence
        if valid(candidate) and fails(candidate):
            return candidate
    return sequence


def _repeats(explored: Exploration, variant: Variant, pool: Pool, on_start: OnStart) -> bool:
    """Run a drill twice and return True if both runs are equal to the byte."""
    again = replace(variant, name=f"{variant.name}-again")
    for made in make(explored, [variant, again], pool, on_start):
        if isinstance(made.run, HpnError):
            return False
    one, other = (explored.kept.folder(each.name) for each in (variant, again))
    return all(_content(one, name) == _content(other, name) for name in _SAME)


def _content(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise InputError(f"{folder / name} cannot be read: {error.strerror}; remove {folder}") from error


def found_of(explored: Exploration, groups: Iterable[Group], pool: Pool, on_start: OnStart) -> Iterator[Found]:
    """Yield the smallest drill of each group."""
    for group in groups:
        yield smallest(explored, group, pool, on_start)
