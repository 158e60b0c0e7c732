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
_AFTER_FAULT = ": "


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


def costs_sheet(of: Comparison) -> Sheet:
    """Return a row for each group; the caption has the fault, if it is the same for all."""
    found = costs([of])
    faults = {each.cost.partition(_AFTER_FAULT)[0] for each in found}
    shared = faults.pop() if len(found) > 1 and len(faults) == 1 else ""
    shared = shared if all(each.cost.startswith(f"{shared}{_AFTER_FAULT}") for each in found) else ""
    several = len({each.drill for each in found}) > 1
    rows = tuple(
        (
            *([each.drill] if several else []),
            *(each.group, each.outcome, each.cost.removeprefix(f"{shared}{_AFTER_FAULT}" if shared else "")),
        )
        for each in found
    )
    caption = ": ".join(filter(None, (of.drill or "what it costs", costs_caption([of]), shared)))
    return Sheet(caption, COLUMNS if several else COLUMNS[1:], rows)


def _cost(group: Group) -> GroupCost:
    outcomes = Counter(run.verdict.outcome.value for run in group.runs)
    told = ", ".join(f"{count} of {outcomes.total()} {outcome}" for outcome, count in sorted(outcomes.items()))
    first = group.runs[0]
    outcome = next(iter(outcomes)) if len(outcomes) == 1 else told
    return GroupCost(first.manifest.drill, group.label, outcome, first.verdict.cost, first.folder)
