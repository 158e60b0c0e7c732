"""How long many runs still take, by the pace of those that have ended; told now and then.

Changes when the pace of runs should be told in other words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from scenarios.run.estimate import EVERY_S, WORTH_TELLING_S, in_words


class RunsLeft:
    """Follows runs from now on. ``shares``: how much of the work each is, in any unit; unknown ones count nothing."""

    def __init__(
        self,
        shares: Mapping[str, float],
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._left = dict(shares)
        self._runs, self._work = len(shares), sum(shares.values())
        self._tell, self._clock = tell, clock
        self._begun_s = self._told_s = clock()

    def ended(self, *runs: str) -> None:
        """These have ended together: tell what is left, when that is due. One that ended before counts once."""
        known = [self._left.pop(run) for run in runs if run in self._left]
        if not known or not self._left:
            return
        now_s, left = self._clock(), sum(self._left.values())
        if now_s - self._told_s < EVERY_S or left >= self._work:
            return
        left_s = (now_s - self._begun_s) * left / (self._work - left)
        if now_s - self._begun_s + left_s > WORTH_TELLING_S:
            self._told_s = now_s
            done = self._runs - len(self._left)
            self._tell(f"{done:,} of {self._runs:,} have ended, about {in_words(left_s)} left")
