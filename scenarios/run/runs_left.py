"""Remaining time of many runs, from the pace of ended and active runs; reported now and then.

Changes when the pace of runs should be reported differently.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from hpn.scenarios.run.estimate import EVERY_S, WORTH_TELLING_S, in_words


class RunsLeft:
    """Follower of many runs.

    ``shares``: work of each run, in any unit; unknown runs count nothing. If the caller does not report which runs have
    ``begun``, the pace comes from ended runs alone.
    """

    def __init__(
        self,
        shares: Mapping[str, float],
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._left = dict(shares)
        self._runs, self._work = len(shares), sum(shares.values())
        self._tell, self._clock = tell, clock
        self._under_way: dict[str, float] = {}  # start time by run
        self._widest = 1
        self._ended_share = self._ended_wall_s = 0.0
        self._begun_s = self._told_s = clock()

    def begun(self, run: str) -> None:
        """Record that a run has started."""
        if run in self._left:
            self._under_way[run] = self._clock()
            self._widest = max(self._widest, len(self._under_way))

    def ended(self, *runs: str) -> None:
        """Record that these runs have ended together and report the remaining time when due.

        A run counts only once.
        """
        now_s = self._clock()
        known = [self._end(run, now_s) for run in runs if run in self._left]
        if not known or not self._left:
            return
        left = sum(self._left.values())
        if now_s - self._told_s < EVERY_S or left >= self._work:
            return
        left_s = self._by_run_s(now_s) if self._ended_share else self._by_all_s(now_s, left)
        if now_s - self._begun_s + left_s > WORTH_TELLING_S:
            self._told_s = now_s
            done = self._runs - len(self._left)
            about = "at least" if self._is_overdue(now_s) else "about"
            self._tell(f"{done:,} of {self._runs:,} have ended, {about} {in_words(left_s)} left")

    def _end(self, run: str, now_s: float) -> str:
        share, since_s = self._left.pop(run), self._under_way.pop(run, None)
        if since_s is not None:
            self._ended_share += share
            self._ended_wall_s += now_s - since_s
        return run

    def _elapsed_s(self, now_s: float) -> dict[str, float]:
        return {run: now_s - since_s for run, since_s in self._under_way.items()}

    def _overdue(self, now_s: float) -> dict[str, float]:
        """Return the elapsed time of active runs that take longer than the pace of ended ones."""
        if not self._ended_share:
            return {}
        pace = self._ended_wall_s / self._ended_share
        return {run: s for run, s in self._elapsed_s(now_s).items() if s > self._left[run] * pace}

    def _is_overdue(self, now_s: float) -> bool:
        """Return True if only overdue runs are left, whose end is unknown."""
        return self._left.keys() <= self._overdue(now_s).keys()

    def _pace(self, now_s: float) -> float:
        """Return wall time per share of ended runs; an overdue run counts as if it ended now."""
        overdue = self._overdue(now_s)
        wall_s = self._ended_wall_s + sum(overdue.values())
        return wall_s / (self._ended_share + sum(self._left[run] for run in overdue))

    def _by_all_s(self, now_s: float, left: float) -> float:
        return (now_s - self._begun_s) * left / (self._work - left)

    def _by_run_s(self, now_s: float) -> float:
        """Return the remaining time at the pace of ended runs, with the largest concurrency so far."""
        pace, begun = self._pace(now_s), self._elapsed_s(now_s)
        each_s = [max(0.0, share * pace - begun.get(run, 0.0)) for run, share in self._left.items()]
        return max([sum(each_s) / self._widest, *each_s])
