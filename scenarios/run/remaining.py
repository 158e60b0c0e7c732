"""Progress and remaining time of a run, from its own reports, and its actual duration at the end.

Changes when a run reports its progress in another form. A guest reports in lines (``results.text.live``), a run on this
kernel in progress messages. This module never waits: the code that supervises a guest calls ``look`` meanwhile.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum

from hpn.results.run.progress import Progress
from hpn.scenarios.run import wall_cost
from hpn.scenarios.run.effort import Effort
from hpn.scenarios.run.estimate import EVERY_S, WORTH_TELLING_S, counted, in_words
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.run.wall_cost import Expected, Stages
from hpn.testbed.vm.engines import EngineSpec

_TRUSTED = 0.25
"""Fraction of the timeline after which the pace is known."""
_SAID = re.compile(r"(?: *(\d{1,7}\.\d) of \d{1,7}\.\d s  )?(.*)", re.DOTALL)


class RunStage(IntEnum):
    """Stage of a run."""

    UP = 0
    TRAFFIC = 1
    JUDGE = 2


_BEGINS = {"healthy": RunStage.TRAFFIC, "analysing": RunStage.JUDGE}
"""Text that a run reports when a stage begins."""


class Remaining:
    """Follower of one run. ``title``: prefix of its lines. ``tell``: called with a line now and then."""

    def __init__(
        self,
        title: str,
        effort: Effort,
        expected: Expected,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = f"{title}: "
        self._effort, self._expected = effort, expected.stages
        self._tell, self._clock = tell, clock
        self._began = [clock()]  # start of each stage so far
        self._told_at = self._began[0]
        self._elapsed_s, self._elapsed_at = 0.0, self._began[0]  # of the drill's own clock, and when that was reported

    def line(self, text: str) -> None:
        """Handle a line that the run printed."""
        if text.startswith(self._prefix) and (said := _SAID.fullmatch(text[len(self._prefix) :])) is not None:
            self._heard(said[2], float(said[1] or 0.0))
        self.look()

    def news(self, news: Progress) -> None:
        """Handle a progress message of a run on this kernel; the remaining time is shown by its listener."""
        self._heard(news.text if news.kind == "phase" else "", news.elapsed_s)

    def look(self) -> None:
        """Report the remaining time when it is due."""
        now = self._clock()
        if now - self._told_at < EVERY_S:
            return
        self._told_at = now
        stage_s, left_s = self._left(now)
        if max(self._expected.total_s, now - self._began[0] + left_s) > WORTH_TELLING_S:
            where = ("lab comes up", f"at {self._elapsed_s:.1f} of {self._effort.drill_s:.1f} s", "analysing")
            about = "about" if stage_s > 0 else "at least"
            self._tell(f"{self._prefix}{where[self._stage]}, {about} {in_words(left_s)} left")

    @property
    def took(self) -> Stages | None:
        """Durations of the stages of a run that ends now; None when it did not complete all of them."""
        if self._stage is not RunStage.JUDGE:
            return None
        up, traffic, judge = self._began
        return Stages(traffic - up, judge - traffic, self._clock() - judge)

    @property
    def _stage(self) -> RunStage:
        return RunStage(len(self._began) - 1)

    def _heard(self, text: str, elapsed_s: float) -> None:
        now = self._clock()
        if _BEGINS.get(text) == len(self._began):
            self._began.append(now)
            self._elapsed_at = now
        elapsed_s = min(elapsed_s, self._effort.drill_s)  # a repair may end a little later
        if self._stage is RunStage.TRAFFIC and self._elapsed_s < elapsed_s:
            self._elapsed_s, self._elapsed_at = elapsed_s, now

    def _left(self, now: float) -> tuple[float, float]:
        """Return the remaining time of this stage, negative when overdue, and of the run."""
        begun, expected = self._began[-1], self._expected
        match self._stage:
            case RunStage.UP:
                stage_s, later_s = expected.up_s - (now - begun), expected.traffic_s + expected.judge_s
            case RunStage.TRAFFIC:
                stage_s, later_s = self._traffic_left(now), expected.judge_s
            case RunStage.JUDGE:
                stage_s, later_s = expected.judge_s - (now - begun), 0.0
        return stage_s, max(stage_s, 0.0) + later_s

    def _traffic_left(self, now: float) -> float:
        """Return the remaining traffic time from the pace so far; the expected pace counts until a quarter is done."""
        done = self._elapsed_s / self._effort.drill_s if self._effort.drill_s else 1.0
        seen_s = self._elapsed_at - self._began[RunStage.TRAFFIC]
        trust = min(done / _TRUSTED, 1.0)
        whole_s = (trust * seen_s / done if done else 0.0) + (1 - trust) * self._expected.traffic_s
        return (1 - done) * whole_s - (now - self._elapsed_at)


class Followed:
    """Run whose progress is followed; if its traffic could not be estimated, lines are only passed on."""

    def __init__(self, remaining: Remaining | None, on_line: Callable[[str], None]) -> None:
        self.remaining = remaining
        self._on_line = on_line

    def line(self, text: str) -> None:
        """Pass a line on and follow it."""
        self._on_line(text)
        if self.remaining is not None:
            self.remaining.line(text)

    def look(self) -> None:
        """Report the remaining time when it is due; see ``Remaining``."""
        if self.remaining is not None:
            self.remaining.look()

    def hearing(self, listen: Callable[[Progress], None]) -> Callable[[Progress], None]:
        """Return a listener that passes progress to ``listen`` and follows it."""
        remaining = self.remaining
        if remaining is None:
            return listen

        def both(news: Progress) -> None:
            listen(news)
            remaining.news(news)

        return both


@contextmanager
def following(order: Order, spec: EngineSpec, on_line: Callable[[str], None]) -> Iterator[Followed]:
    """Follow the run made in this context; if it ends without an error, store its durations."""
    effort = counted(order.drill)
    if effort is None:
        yield Followed(None, on_line)
        return
    effort = effort.longer(order.delay_ns)
    expected = wall_cost.expected(effort, spec, wall_cost.load())
    remaining = Remaining(order.title, effort, expected, on_line)
    yield Followed(remaining, on_line)
    if (took := remaining.took) is not None:
        wall_cost.learn(wall_cost.cost_of(effort, spec, took))
