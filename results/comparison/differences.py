"""Differences of groups of runs from the first group: the figures, their size, and the smallest visible one. Pure.

Changes when figures are distinguished by another rule. Two groups differ in a figure if their ranges of possible values
do not overlap. If they overlap, the result has the smallest difference that would have been visible. ``switch`` counts
from detect: if detect takes longer, the same rewrite of a LAG comes sooner after it, or before it. So if detect
differs, a difference in switch is not the network's; outages show the sum of both.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from hpn.failover.analysis.intervals import SWITCH
from hpn.failover.analysis.model import DrillMetrics, EdgeKind
from hpn.results.comparison.figures import Key, Summary, summaries
from hpn.results.comparison.groups import Group, asked_otherwise
from hpn.results.run.manifest import Manifest
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.lag.datapaths import DATAPATHS
from hpn.testbed.vm.engines import has_virtual_time

CPU_COST = "CPU time: in virtual time computing takes none, elsewhere it is part of every reaction"
UNEXPLAINED = "unexplained: compare the events.jsonl of the two runs"
_LEAST_IDLE_PCT = 10.0


@dataclass(frozen=True, slots=True)
class Side:
    """Runs of one kind, with the data needed to find causes; ``manifest`` is that of the first."""

    label: str
    manifest: Manifest
    metrics: Sequence[DrillMetrics]

    @property
    def is_virtual(self) -> bool:
        """True if its clock is virtual."""
        return has_virtual_time(self.manifest.engine)

    @property
    def doubt(self) -> str:
        """Reason why its machine may have made it slower; '' if there is none."""
        doubts = [doubt for each in self.metrics for doubt in each.inconclusive]
        idle = [each.host.idle_mean_pct for each in self.metrics if each.host is not None]
        if doubts:
            return f"CPU noise on {self.label}: {doubts[0]}"
        is_busy = idle and min(idle) < _LEAST_IDLE_PCT and not self.is_virtual
        return f"CPU noise: a host of {self.label} was {min(idle):.0f} % idle" if is_busy else ""


def causes(slower: Side, faster: Side, figure: str, *, at_repair: bool) -> Iterator[str]:
    """Yield the reasons why ``slower`` may take more ms than ``faster``, one line each; nothing if none is known."""
    mine, theirs = slower.manifest.datapath, faster.manifest.datapath
    if mine != theirs and figure != "detect":
        yield from _datapaths(mine, theirs, at_repair)
    if faster.is_virtual and not slower.is_virtual:
        yield CPU_COST
    if slower.doubt:
        yield slower.doubt


def _datapaths(mine: str, theirs: str, at_repair: bool) -> Iterator[str]:
    unknown = sorted({mine, theirs} - DATAPATHS.keys())
    if unknown:
        yield from (f"nothing is known here of the {name} datapath (a plug-in?)" for name in unknown)
        return
    slower, faster = DATAPATHS[mine], DATAPATHS[theirs]
    if _pace(slower, at_repair) > _pace(faster, at_repair):
        yield slower.at_repair if at_repair else slower.at_failure


def _pace(kind: LagKind, at_repair: bool) -> float:
    return kind.repair_within_ms if at_repair else kind.failure_within_ms


_REPAIR = " repair "
_DETECT = "detect"


class Finding(StrEnum):
    """Result of comparing one figure of two groups."""

    NONE_SEEN = "no difference seen"
    MORE = "more"
    LESS = "less"
    MISSING = "not measured"
    START_MOVED = "not comparable: it counts from detect, which differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of one group, compared with the first group's.

    ``seen_from``: the smallest visible difference (infinite if a figure is a lower bound). ``why``: a known cause that
    acts in this direction; otherwise the settings that differ.
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
        """True if the other group is certainly worse; a missing figure says nothing."""
        return self.finding is (Finding.MORE if self.key.more_is_worse else Finding.LESS)

    @property
    def is_of_single_runs(self) -> bool:
        """True if both sides are single runs."""
        return self.reference.count == 1 and self.other is not None and self.other.count == 1

    @property
    def apart(self) -> float:
        """Minimum difference: the gap between their intervals; 0 if no difference is seen."""
        if self.other is None:
            return 0.0
        return max(self.other.low - self.reference.high, self.reference.low - self.other.high, 0.0)

    @property
    def apart_by(self) -> tuple[float, float]:
        """Ends between which the difference of the medians lies; infinite where a median is a bound."""
        if self.other is None:
            return -math.inf, math.inf
        ours, theirs = self.reference.middle(self.key), self.other.middle(self.key)
        return theirs[0] - ours[1], theirs[1] - ours[0]


def differences(groups: Sequence[Group]) -> tuple[Difference, ...]:
    """Return every figure of the first group compared with every other group, in order of figure."""
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
    """Return the comparison of one figure of two groups."""
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
    """Return MORE or LESS if the ranges of possible values do not overlap, else NONE_SEEN."""
    if other.low > base.high:
        return Finding.MORE
    return Finding.LESS if other.high < base.low else Finding.NONE_SEEN


def start_moved(base: Mapping[Key, Summary], other: Mapping[Key, Summary]) -> frozenset[Key]:
    """Return the figures of an edge or expectation that count from another figure, which differs between the groups."""
    starts = {key.where for key, of in base.items() if key.where and key.name == _DETECT and _moved(of, other.get(key))}
    counted = (key for key in base if key.name.partition(" ")[0] == SWITCH)
    return frozenset(key for key in counted if any(_is_of(key, edge) for edge in starts))


def without_start(found: Difference, moved: Collection[Key]) -> Difference:
    """Return the difference, marked as not comparable if the start of its figure moved."""
    apart = found.finding in {Finding.MORE, Finding.LESS} and found.key in moved
    return replace(found, finding=Finding.START_MOVED, why="") if apart else found


def _moved(base: Summary, other: Summary | None) -> bool:
    return other is None or told_apart(base, other) is not Finding.NONE_SEEN


def _is_of(key: Key, edge: str) -> bool:
    """Return True if a figure counts from the detection at that edge; an expectation may cover edges of one kind."""
    if key.where:
        return key.where == edge
    kind = next((kind for kind in EdgeKind if key.name.endswith(f" at {kind}")), "")
    return f" {kind} " in f"{edge} " if kind else True


def _seen_from(base: Summary, other: Summary) -> float:
    """Return the smallest difference of medians at which intervals of these widths would not overlap."""
    upwards = (base.high - base.median) + (other.median - other.low)
    downwards = (base.median - base.low) + (other.high - other.median)
    return max(upwards, downwards)
