"""Scope of a limit when a drill is repeated: every run, or a statistic over the runs. Pure.

Changes when a drill can request another statistic.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Statistic(StrEnum):
    """A statistic over the runs; the value is the one after ``over_repeats`` in a drill file."""

    EVERY = "every"  # the limit holds for every run
    MEDIAN = "median"  # it holds for the median over the runs, whichever runs these are
    P95 = "p95"  # it holds for 95 % of all runs that could be made


LEAST_RUNS: Mapping[Statistic, int] = {Statistic.EVERY: 1, Statistic.MEDIAN: 5, Statistic.P95: 59}
"""Minimum runs for a statement at 95 % confidence.

The bootstrap's interval of a median contains the true one in 50, 75, 88 and 94 % of cases with 2, 3, 4 and 5 runs.
If all runs keep a limit, it takes 59 of them to show that 95 % of runs do (0.95 ** 59 = 0.048).
"""
