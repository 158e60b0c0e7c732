"""What a limit holds for when a drill is repeated: every run, or a statistic over the runs. Pure.

Changes when another statistic can be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Statistic(StrEnum):
    """A statistic over the runs; the value is what a drill file writes after ``over_repeats``."""

    EVERY = "every"  # the limit holds for every run
    MEDIAN = "median"  # it holds for the median over the runs, whichever runs these are
    P95 = "p95"  # it holds for 95 % of all runs that could be made


LEAST_RUNS: Mapping[Statistic, int] = {Statistic.EVERY: 1, Statistic.MEDIAN: 5, Statistic.P95: 59}
"""Fewer runs cannot say it at 95 % confidence.

The bootstrap's interval of a median holds the true one in 50, 75, 88 and 94 % of cases with 2, 3, 4 and 5 runs; and
runs that all keep a limit show only from 59 on that 95 % of them do (0.95 ** 59 = 0.048).
"""
