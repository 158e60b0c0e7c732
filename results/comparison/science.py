"""Evidence for a difference between two groups: intervals, effect size, test, runs needed. Pure. Imports numpy.

Changes when a difference is assessed by another statistic. Runs form pairs if phase and seeds of each are unique in its
group and all runs of the smaller group have a partner; otherwise the groups are compared. Values that are bounds remain
bounds: results are then bounds too, or not determined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hpn.results.comparison.differences import start_moved
from hpn.results.comparison.exact import (
    SIGNIFICANT,
    cliffs_delta,
    holm,
    mann_whitney,
    signed,
)
from hpn.results.comparison.figures import Key, Value, summaries, values_of
from hpn.results.comparison.groups import LEAST, Compared, Group, why_not
from hpn.results.comparison.intervals import (
    Span,
    difference_of,
    interval_of_groups,
    interval_of_pairs,
    is_degenerate,
    mean,
    median,
    paired,
    statistic_of,
)
from hpn.results.comparison.power import pairs_needed, runs_of_groups, shift_of_groups, shift_of_pairs
from hpn.results.judge.repeats.statistic import LEAST_RUNS, Statistic
from hpn.results.run.identity import DRILL, other_fabric

LEAST_FOR_INTERVAL = LEAST_RUNS[Statistic.MEDIAN]
Runs = Sequence[tuple[Compared, Value]]


@dataclass(frozen=True, slots=True)
class DifferenceEvidence:
    """Evidence for one figure of a group; a difference is the group's value minus the first group's.

    ``median``: of the differences if ``pairs`` is not 0, else the difference of the medians; ``mean`` likewise. The 95
    % intervals are None for fewer than LEAST_FOR_INTERVAL runs; that of the median also if it is ``degenerate``. ``p``:
    two-sided, None if not determined; ``holm``: the same, corrected for all figures that are tested. ``more_runs`` of
    each group would show a Hodges-Lehmann shift of ``to_tell`` among them; a value above ``power.MOST_RUNS`` means more
    than that. ``also``: further figures with the same numbers in all runs, such as an edge's and an expectation's: one
    measurement.
    """

    key: Key
    group: str
    runs: tuple[int, int]
    pairs: int
    median: Span
    median_interval: Span | None
    mean: Span
    mean_interval: Span | None
    delta: Span
    test: str
    exact: bool
    p: float | None
    holm: float | None = None
    to_tell: float | None = None
    more_runs: int | None = None
    degenerate: bool = False
    also: tuple[Key, ...] = ()
    resolved: bool = True  # False: one value lies in the intervals of all runs, so that all may have had it

    @property
    def keys(self) -> tuple[Key, ...]:
        """Figures that this evidence covers."""
        return self.key, *self.also

    @property
    def is_tested(self) -> bool:
        """True if it is one of the figures that Holm's correction counts: its p is known, and runs resolve it.

        ``resolved`` is of all runs together, whichever group they are of, so that leaving the others out biases no p.
        """
        return self.p is not None and self.resolved

    @property
    def significant(self) -> bool:
        """True if its test shows a difference that runs resolve, at 5 % corrected for all figures that are tested."""
        return self.resolved and self.holm is not None and self.holm < SIGNIFICANT

    @property
    def differs(self) -> bool:
        """True if test and interval both show a difference; without an interval the median must."""
        ends = self.median_interval or self.median
        return self.significant and not ends.low <= 0 <= ends.high

    @property
    def is_worse(self) -> bool:
        """True if the other group is the worse one, where they differ."""
        return (self.median.low > 0) is self.key.more_is_worse


def science(groups: Sequence[Group], to_tell: float | None = None) -> tuple[DifferenceEvidence, ...]:
    """Return the evidence for every figure with two runs in the first and in another group; nothing if ``why_not``.

    Holm's correction is over the figures of all groups.
    ``to_tell``: the difference for which the number of runs is computed, in the figure's unit; None: the one measured.
    """
    if why_not(groups):
        return ()
    first, *others = groups
    base = _by_key(first)
    alone: list[DifferenceEvidence] = []
    runs_of: list[tuple[Runs, Runs]] = []
    for group in others:
        held = _by_key(group)
        moved = start_moved(summaries(first), summaries(group))
        both = {key: (runs, held[key]) for key, runs in base.items() if key in held and key not in moved}
        told, also = _once({key: of for key, of in both.items() if min(map(len, of)) >= LEAST})
        alone += [replace(evidence(key, group.label, *of), also=tuple(also[key])) for key, of in told.items()]
        runs_of += told.values()
    figures = sum(each.is_tested for each in alone)
    corrected = zip(_among(alone), runs_of, strict=True)
    return tuple(_with_more(each, *of, to_tell, figures) for each, of in corrected)


def _once(told: Mapping[Key, tuple[Runs, Runs]]) -> tuple[Mapping[Key, tuple[Runs, Runs]], Mapping[Key, list[Key]]]:
    """Return the distinct figures, and for each the others with the same numbers in all runs."""
    first: dict[object, Key] = {}
    also: dict[Key, list[Key]] = {}
    for key, of in told.items():
        numbers = tuple((run.folder, _span(value)) for runs in of for run, value in runs)
        same = (key.unit, key.more_is_worse, numbers) if _varies(*of) else key
        known = first.setdefault(same, key)
        also.setdefault(known, []).extend([key] if known != key else [])
    return {key: told[key] for key in also}, also


def evidence(key: Key, label: str, first: Runs, other: Runs) -> DifferenceEvidence:
    """Return the evidence for one figure by itself."""
    one, two = _spans(first), _spans(other)
    pairs = _pairs(first, other)
    degenerate = is_degenerate([pairs] if pairs else [one, two])
    tested = signed(pairs) if pairs else mann_whitney(one, two)
    enough = (len(pairs) or min(len(one), len(two))) >= LEAST_FOR_INTERVAL
    ends = {
        over: (interval_of_pairs(pairs, over) if pairs else interval_of_groups(one, two, over)) if enough else None
        for over in (median, mean)
    }
    enough_for_median = enough and not degenerate
    at = {over: statistic_of(pairs, over) if pairs else difference_of(one, two, over) for over in (median, mean)}
    return DifferenceEvidence(
        key, label, (len(first), len(other)), len(pairs), at[median], ends[median] if enough_for_median else None,
        at[mean], ends[mean], cliffs_delta(one, two), tested.name, tested.exact, tested.p,
        degenerate=enough and degenerate, resolved=_resolved(first, other),
    )  # fmt: skip


def _resolved(first: Runs, other: Runs) -> bool:
    values = [value for runs in (first, other) for _, value in runs]
    return max(value.low for value in values) > min(math.inf if each.open_ended else each.high for each in values)


def _with_more(
    found: DifferenceEvidence, first: Runs, other: Runs, to_tell: float | None, figures: int
) -> DifferenceEvidence:
    """Return the evidence with the number of runs needed.

    Unchanged for bounds, whose spread is unknown, and for a measured difference that is 0 or that no run resolves.
    """
    one, two, pairs = _spans(first), _spans(other), _pairs(first, other)
    if not all(each.known for each in (*one, *two)) or (to_tell is None and not found.resolved):
        return found
    ours, theirs, apart = ([each.low for each in of] for of in (one, two, pairs))
    seen = shift_of_pairs(apart) if apart else shift_of_groups(ours, theirs)
    if not (seen if to_tell is None else to_tell):
        return found
    among = max(figures, 1)
    if apart:
        needed, made = pairs_needed(apart, to_tell, among), len(apart)
    else:
        needed, made = runs_of_groups(ours, theirs, to_tell, among), min(found.runs)
    return replace(found, to_tell=abs(seen) if to_tell is None else to_tell, more_runs=max(needed - made, 0))


def _among(found: Sequence[DifferenceEvidence]) -> list[DifferenceEvidence]:
    """Return the evidence with Holm's correction, which counts the figures that are tested."""
    corrected = iter(holm([each.p for each in found if each.is_tested and each.p is not None]))
    return [replace(each, holm=next(corrected) if each.is_tested else each.p) for each in found]


def _varies(first: Runs, other: Runs) -> bool:
    return len({*_spans(first), *_spans(other)}) > 1


def _spans(of: Runs) -> list[Span]:
    return [_span(value) for _, value in of]


def _by_key(group: Group) -> Mapping[Key, Runs]:
    found: dict[Key, list[tuple[Compared, Value]]] = {}
    for run in group.runs:
        for key, value in values_of(run).items():
            found.setdefault(key, []).append((run, value))
    return found


def _span(value: Value) -> Span:
    """Return the possible values: above a lower bound, or, for 0, up to the resolution."""
    if value.open_ended:
        return Span(value.measured, math.inf)
    return Span(value.measured, value.measured or value.high)


def _pairs(first: Runs, other: Runs) -> list[Span]:
    """Return the differences of pairs; empty if runs cannot be paired, as with other faults or another fabric."""
    if not _of_one_course(first[0][0], other[0][0]):
        return []
    one, two = ({_partner(run): _span(value) for run, value in of} for of in (first, other))
    common = [partner for partner in one if partner in two]
    if len(one) < len(first) or len(two) < len(other) or len(common) < min(len(one), len(two)):
        return []
    return paired([one[each] for each in common], [two[each] for each in common])


def _of_one_course(one: Compared, other: Compared) -> bool:
    """Return True if a phase and seeds mean the same for both.

    Timers and policies of the fabric may differ, nothing else of it. Digests and keys decide; names if folders lack
    them.
    """
    drills = [each.identity.digests.get(DRILL, "") for each in (one, other)]
    if not all(drills):
        drills = [each.manifest.drill for each in (one, other)]
    if one.identity.told and other.identity.told:
        return drills[0] == drills[1] and not other_fabric(one.identity.told, other.identity.told)
    return drills[0] == drills[1] and one.manifest.fabric == other.manifest.fabric


def _partner(run: Compared) -> tuple[object, ...]:
    return (run.manifest.phase, run.manifest.phase_ms, *sorted(run.manifest.seeds.items()))
