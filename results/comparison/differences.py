"""Groups of runs held against the first of them: what differs, by how much, and what would have been seen. Pure.

Changes when figures are told apart by another rule. Two groups differ in a figure when no value that one may have had
is one that the other may have had. Where they do not, the figure says how large a difference would have had to be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hpn.results.comparison.causes import UNEXPLAINED, Side, causes
from hpn.results.comparison.figures import Key, Summary, summaries
from hpn.results.comparison.groups import Group, asked_otherwise

_REPAIR = " repair "


class Finding(StrEnum):
    """What holding one figure of two groups against each other says."""

    NONE_SEEN = "no difference seen"
    MORE = "more"
    LESS = "less"
    MISSING = "not measured"


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
    measured = [(group, summaries(group)) for group in others]
    return tuple(
        difference(key, base, found.get(key), first, group)
        for key, base in summaries(first).items()
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


def _seen_from(base: Summary, other: Summary) -> float:
    """How far apart the medians must be, with intervals as wide as these, so that they have no value in common."""
    upwards = (base.high - base.median) + (other.median - other.low)
    downwards = (base.median - base.low) + (other.high - other.median)
    return max(upwards, downwards)
