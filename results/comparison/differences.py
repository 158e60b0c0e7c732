"""Groups of runs held against the first of them: what differs, by how much, and what would have been seen. Pure.

Changes when figures are told apart by another rule. Two groups differ in a figure when no value that one may have had
is one that the other may have had. Where they do not, the figure says how large a difference would have had to be.
``switch`` counts from detect: once detect takes longer, the same rewrite of a LAG comes sooner after it, or before it.
Where detect differs, a difference in switch therefore is none of the network; outages tell what both came to.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from hpn.failover.analysis.intervals import SWITCH
from hpn.failover.analysis.model import EdgeKind
from hpn.results.comparison.causes import UNEXPLAINED, Side, causes
from hpn.results.comparison.figures import Key, Summary, summaries
from hpn.results.comparison.groups import Group, asked_otherwise

_REPAIR = " repair "
_DETECT = "detect"


class Finding(StrEnum):
    """What holding one figure of two groups against each other says."""

    NONE_SEEN = "no difference seen"
    MORE = "more"
    LESS = "less"
    MISSING = "not measured"
    START_MOVED = "not comparable: it counts from detect, which differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of one group against the first group's.

    ``seen_from``: a difference of more than that would have been seen (infinite where a figure is a lower bound).
    ``why``: what is known to make it so, and points the right way; else what was asked otherwise.
    """

    key: Key
    group: str
    reference: Summary
    other: Summary | None
    finding: Finding
    seen_from: float = math.inf
    why: str = ""

    @property
    def is_worse(self) -> bool:
        """Whether the other group is worse beyond all doubt; a figure that it lacks says nothing."""
        return self.finding is (Finding.MORE if self.key.more_is_worse else Finding.LESS)

    @property
    def is_of_single_runs(self) -> bool:
        """Whether one run stands against one."""
        return self.reference.count == 1 and self.other is not None and self.other.count == 1

    @property
    def apart(self) -> float:
        """The least that the two differ by: between the ends of their intervals; 0 where no difference is seen."""
        if self.other is None:
            return 0.0
        return max(self.other.low - self.reference.high, self.reference.low - self.other.high, 0.0)


def differences(groups: Sequence[Group]) -> tuple[Difference, ...]:
    """Every figure that the first group has, of every other group; in order of figure."""
    if not groups:
        return ()
    first, *others = groups
    measured, own = [(group, summaries(group)) for group in others], summaries(first)
    moved = {group.label: start_moved(own, found) for group, found in measured}
    return tuple(
        without_start(difference(key, base, found.get(key), first, group), moved[group.label])
        for key, base in own.items()
        for group, found in measured
    )


def difference(key: Key, base: Summary, other: Summary | None, first: Group, group: Group) -> Difference:
    """One figure of two groups."""
    if other is None:
        return Difference(key, group.label, base, None, Finding.MISSING)
    finding = told_apart(base, other)
    if finding is Finding.NONE_SEEN:
        return Difference(key, group.label, base, other, finding, _seen_from(base, other))
    slower, faster = (group, first) if finding is Finding.MORE else (first, group)
    why = _why(slower, faster, key) if key.unit == "ms" else ""
    asked = asked_otherwise(first, group)
    return Difference(key, group.label, base, other, finding, _seen_from(base, other), why or asked or UNEXPLAINED)


def _why(slower: Group, faster: Group, key: Key) -> str:
    at_repair = _REPAIR in f"{key.where} {key.name} "
    return "; ".join(causes(_side(slower), _side(faster), key.name, at_repair=at_repair))


def _side(group: Group) -> Side:
    return Side(group.label, group.runs[0].manifest, [run.metrics for run in group.runs])


def told_apart(base: Summary, other: Summary) -> Finding:
    """Whether every value that one may have had lies above every one of the other."""
    if other.low > base.high:
        return Finding.MORE
    return Finding.LESS if other.high < base.low else Finding.NONE_SEEN


def start_moved(base: Mapping[Key, Summary], other: Mapping[Key, Summary]) -> frozenset[Key]:
    """Figures that count from another one which the two do not have alike: of an edge, or of an expectation."""
    starts = {key.where for key, of in base.items() if key.where and key.name == _DETECT and _moved(of, other.get(key))}
    counted = (key for key in base if key.name.partition(" ")[0] == SWITCH)
    return frozenset(key for key in counted if any(_is_of(key, edge) for edge in starts))


def without_start(found: Difference, moved: Collection[Key]) -> Difference:
    """The same, or that nothing can be said of it, where what it counts from moved."""
    apart = found.finding in {Finding.MORE, Finding.LESS} and found.key in moved
    return replace(found, finding=Finding.START_MOVED, why="") if apart else found


def _moved(base: Summary, other: Summary | None) -> bool:
    return other is None or told_apart(base, other) is not Finding.NONE_SEEN


def _is_of(key: Key, edge: str) -> bool:
    """Whether a figure counts from the detection at that edge; an expectation may be of the edges of one kind."""
    if key.where:
        return key.where == edge
    kind = next((kind for kind in EdgeKind if key.name.endswith(f" at {kind}")), "")
    return f" {kind} " in f"{edge} " if kind else True


def _seen_from(base: Summary, other: Summary) -> float:
    """How far apart the medians must be, with intervals as wide as these, so that they have no value in common."""
    upwards = (base.high - base.median) + (other.median - other.low)
    downwards = (base.median - base.low) + (other.high - other.median)
    return max(upwards, downwards)
