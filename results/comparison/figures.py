"""Figures of runs that are compared: of edges, jobs and streams, and of every expectation with a measurement. Pure.

Changes when another figure is compared. The figure of an outage without end is a lower bound, and stays one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from hpn.results.comparison.edge_figures import figures_of
from hpn.results.comparison.groups import Compared, Group
from hpn.results.comparison.job_figures import job_figures
from hpn.results.comparison.stream_figures import stream_figures

MS = "ms"


@dataclass(frozen=True, slots=True)
class Key:
    """A figure: of an edge by its label, of a job or streams, or of an expectation by metric, flows and edge."""

    where: str  # '' for an expectation
    name: str
    unit: str
    more_is_worse: bool = True


@dataclass(frozen=True, slots=True)
class Value:
    """One run's value of a figure."""

    measured: float
    low: float
    high: float
    open_ended: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """A figure over the runs of a group: its median, and the range of all possible values in any of them."""

    count: int
    median: float
    low: float  # the least end of all intervals
    high: float  # the largest; infinite when a run has only a lower bound
    open_ended: bool  # the median is a lower bound
    unseen: float = 0.0  # median of the upper bounds if every run has 0 with one; a stored baseline does not know

    def middle(self, key: Key) -> tuple[float, float]:
        """Return the ends between which the median lies: equal unless it is a bound; 0 ms may be any unseen time."""
        if self.open_ended:
            return self.median, math.inf
        return self.median, self.unseen if key.unit == MS and self.unseen else self.median


def summaries(group: Group) -> Mapping[Key, Summary]:
    """Return the summary of every figure that any of its runs has."""
    found: dict[Key, list[Value]] = {}
    for run in group.runs:
        for key, value in values_of(run).items():
            found.setdefault(key, []).append(value)
    return {key: _summary(values) for key, values in found.items()}


def values_of(run: Compared) -> Mapping[Key, Value]:
    """Return every figure of a run once; two limits on one figure count as one."""
    found: dict[Key, Value] = {}
    for key, value in _values(run):
        found.setdefault(key, value)
    return found


def _values(run: Compared) -> Iterator[tuple[Key, Value]]:
    for where, name, unit, measured, interval in (*job_figures(run.metrics), *stream_figures(run.metrics)):
        if math.isfinite(measured):
            yield Key(where, name, unit, more_is_worse=False), Value(measured, interval.low, interval.high)
    for edge, name, measured, interval, open_ended in figures_of(run.metrics):
        yield Key(edge, name, MS), Value(measured, interval.low, interval.high, open_ended)
    for check in run.verdict.checks:
        if check.measured is not None and math.isfinite(check.measured):
            low = check.measured if check.low is None else min(check.low, check.measured)
            high = check.measured if check.high is None else max(check.high, check.measured)
            key = Key("", check.subject, check.unit, check.worse_if_more)
            yield key, Value(check.measured, low, high, check.open_ended)


def _summary(values: Sequence[Value]) -> Summary:
    """Return the summary. The median is a lower bound if it or a smaller value is one."""
    middle = median(value.measured for value in values)
    is_open = any(value.open_ended and value.measured <= middle for value in values)
    high = math.inf if any(value.open_ended for value in values) else max(value.high for value in values)
    none_seen = all(value.measured == value.low == 0 < value.high < math.inf for value in values)
    unseen = median(value.high for value in values) if none_seen else 0.0
    return Summary(len(values), middle, min(value.low for value in values), high, is_open, unseen)
