"""Outcomes and costs of compared groups, drill by drill. Pure.

Changes when a comparison begins with something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hpn.results.comparison.drills import Comparison
from hpn.results.comparison.groups import Group
from hpn.results.text.comparison import Sheet

COLUMNS = ("drill", "group", "outcome", "cost")


class GroupCost(NamedTuple):
    """A group's runs. ``outcome``: 'pass', or '3 of 5 pass'; ``cost``: a sentence, of its first run."""

    drill: str
    group: str
    outcome: str
    cost: str
    folder: str  # of the first run


def costs(comparisons: Sequence[Comparison]) -> Sequence[GroupCost]:
    """Return the cost of each group that has trusted runs, in order."""
    return [_cost(group) for each in comparisons for group in each.groups if group.runs]


def costs_caption(found: Sequence[Comparison]) -> str:
    """Return the caption of their table; '' if every group has one run."""
    several = any(len(group.runs) > 1 for each in found for group in each.groups)
    return "of several runs of a group, the cost of the first" if several else ""


def costs_sheet(found: Sequence[Comparison]) -> Sheet:
    """Return a row for each group of each drill."""
    rows = tuple((of.drill, of.group, of.outcome, of.cost) for of in costs(found))
    return Sheet(": ".join(filter(None, ("what it costs", costs_caption(found)))), COLUMNS, rows)


def _cost(group: Group) -> GroupCost:
    outcomes = Counter(run.verdict.outcome.value for run in group.runs)
    told = ", ".join(f"{count} of {outcomes.total()} {outcome}" for outcome, count in sorted(outcomes.items()))
    first = group.runs[0]
    outcome = next(iter(outcomes)) if len(outcomes) == 1 else told
    return GroupCost(first.manifest.drill, group.label, outcome, first.verdict.cost, first.folder)
