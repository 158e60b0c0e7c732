"""Outcomes and costs of compared groups, drill by drill. Pure.

Changes when a comparison begins with something else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest
from statistics import median
from typing import NamedTuple

from hpn.failover.analysis.job import LEAST_LOST
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.comparison.drills import Comparison
from hpn.results.comparison.groups import LEAST, Group
from hpn.results.comparison.stream_figures import SHARE, stream_figures
from hpn.results.text.comparison import Sheet

COLUMNS = ("drill", "group", "outcome", "cost")
_AFTER_FAULT = ": "


class GroupCost(NamedTuple):
    """A group's runs. ``outcome``: 'pass', or '3 of 5 pass'; ``cost``: of its first run, and the range over all."""

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
    runs = [group.runs for each in found for group in each.groups]
    if not any(len(of) > 1 for of in runs):
        return ""
    jobs = any(run.metrics.job is not None for of in runs for run in of)
    own = "; iterations lost: against the group's own rate before" if jobs else ""
    return f"the cost of a group's first run, then the range over all its runs{own}"


def without_fault(found: Sequence[GroupCost]) -> tuple[str, Sequence[GroupCost]]:
    """Return the fault that begins the cost of all groups, and the costs without it; '' if it is not the same."""
    parts = [each.cost.partition(_AFTER_FAULT) for each in found]
    faults = {fault if after else "" for fault, after, _ in parts}
    if len(found) < LEAST or len(faults) != 1 or "" in faults:
        return "", found
    return faults.pop(), [each._replace(cost=cost) for each, (_, _, cost) in zip(found, parts, strict=True)]


def costs_sheet(of: Comparison) -> Sheet:
    """Return a row for each group; the caption has the fault, if it is the same for all."""
    shared, found = without_fault(costs([of]))
    several = len({each.drill for each in found}) > 1
    rows = tuple((*([each.drill] if several else []), each.group, each.outcome, each.cost) for each in found)
    caption = ": ".join(filter(None, (of.drill or "what it costs", costs_caption([of]), shared)))
    return Sheet(caption, COLUMNS if several else COLUMNS[1:], rows)


def _cost(group: Group) -> GroupCost:
    outcomes = Counter(run.verdict.outcome.value for run in group.runs)
    told = ", ".join(f"{count} of {outcomes.total()} {outcome}" for outcome, count in sorted(outcomes.items()))
    first = group.runs[0]
    outcome = next(iter(outcomes)) if len(outcomes) == 1 else told
    cost = " ".join(filter(None, (first.verdict.cost, over_runs([run.metrics for run in group.runs]))))
    return GroupCost(first.manifest.drill, group.label, outcome, cost, first.folder)


def over_runs(runs: Sequence[DrillMetrics]) -> str:
    """Return 'In 10 runs: less than 0.1 to 6.0 iterations lost, median 0.4.' of jobs, the goodput of streams.

    '' for one run, and for jobs that died for good, whose loss grows with the run.
    """
    jobs = [run.job for run in runs if run.job is not None]
    if len(runs) < LEAST or any(job.stays_dead for job in jobs):
        return ""
    if jobs:
        with_edges = [job for job in jobs if job.edges]
        open_ended = [job.goes_on_losing for job in with_edges]
        return _range([job.lost for job in with_edges], len(runs), "iterations lost", _iterations, open_ended)
    shares = [value for run in runs for _, _, unit, value, _ in stream_figures(run) if unit == SHARE]
    return _range([share - 100 for share in shares], len(runs), "of goodput in the first fault", _change)


def _range(
    values: Sequence[float], runs: int, what: str, text: Callable[[float], str], open_ended: Sequence[bool] = ()
) -> str:
    """Return the range and the median; '' unless every run has a value. ``open_ended``: it is a lower bound."""
    if len(values) < runs:
        return ""
    ends = [math.inf if is_open else value for value, is_open in zip_longest(values, open_ended)]

    def shown(statistic: Callable[[Sequence[float]], float]) -> str:
        value = statistic(values)
        return f"{'at least ' * (value != statistic(ends))}{text(value)}"

    least, most = shown(min), shown(max)
    if least == most:
        return f"In all {runs} runs: {least} {what}."
    return f"In {runs} runs: {least} to {most} {what}, median {shown(median)}."


def _iterations(lost: float) -> str:
    return f"{lost:.1f}" if lost >= LEAST_LOST else f"< {LEAST_LOST:g}"


def _change(percent: float) -> str:
    return f"{percent:+.1f} %"
