"""Job in a month of failures: hours of stalls and slow-down, and hours lost to crashes. Pure; imports numpy."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from hpn.scenarios.model.month.failures import MONTH_H, Drawn, Failure, Kind
from hpn.scenarios.model.month.job import ModelledJob
from hpn.traffic.fluid.solve import Floats

_KILL = "kill"


@dataclass
class LostHours:
    """Hours of a month that the whole job lost, by reason, and the number of crashes."""

    slower_h: float = 0.0
    stalled_h: float = 0.0
    rolled_back_h: float = 0.0
    down_h: float = 0.0
    crashes: int = 0

    @property
    def total_h(self) -> float:
        """Total of all hours."""
        return self.slower_h + self.stalled_h + self.rolled_back_h + self.down_h


@dataclass(frozen=True, eq=False)
class _Union:
    """Intervals of time; overlapping ones are merged."""

    edges_h: Floats
    so_far_h: Floats

    @classmethod
    def of(cls, starts_h: Floats, lengths_h: Floats) -> _Union:
        order = np.argsort(starts_h, kind="stable")
        begins = starts_h[order]
        ends = np.maximum.accumulate(begins + lengths_h[order]) if len(begins) else begins
        begins = np.maximum(begins, np.concatenate([[-math.inf], ends[:-1]]) if len(ends) else begins)
        done = np.cumsum(ends - begins)
        edges = np.column_stack([begins, ends]).ravel()
        return cls(edges, np.column_stack([done - (ends - begins), done]).ravel())

    def between(self, from_h: float, to_h: float) -> float:
        """Return how much of a span the intervals cover."""
        if not len(self.edges_h):
            return 0.0
        first, last = np.interp([from_h, to_h], self.edges_h, self.so_far_h, left=0.0)
        return float(last - first)


@dataclass
class _Life:
    """State of a job during a month; ``down_until_h`` is when it computes again."""

    job: ModelledJob
    drawn: Drawn
    stalled: _Union
    dark: _Union
    lost: LostHours = field(default_factory=LostHours)
    active: list[Failure] = field(default_factory=list)
    spares: dict[Hashable, int] = field(default_factory=dict)
    down_until_h: float = 0.0
    up_since_h: float = 0.0

    def change(self, at_h: float, what: Failure | str) -> None:
        """Apply the start or end of a failure, or a flap that kills a queue pair."""
        if isinstance(what, str):
            if self.is_up(at_h):
                self.crash(at_h)
        elif what in self.active:
            self.active.remove(what)
        elif at_h < what.until_h:
            self.active.append(what)
            if self.is_up(at_h) and self.job.network.has_another_way and self.job.stretch([what]) > 1:
                self.lost.stalled_h += self.job.failover_s / 3600

    def is_up(self, at_h: float) -> bool:
        """Return True if the job computes."""
        return at_h >= self.down_until_h

    def crash(self, at_h: float) -> None:
        """Record a crash: work since the checkpoint is lost, and the time until the job computes again."""
        given = self.job.given
        lot = self.drawn.rollbacks[self.lost.crashes % len(self.drawn.rollbacks)]
        self.lost.rolled_back_h += min(float(lot) * given.checkpoint_h, at_h - self.up_since_h)
        self.lost.crashes += 1
        self.down_until_h = at_h + given.dies_after_s / 3600 + given.restart_min / 60

    def pass_time(self, from_h: float, to_h: float) -> None:
        """Account for a span without changes."""
        stretch = self.job.stretch(self.active) if self.active else 1.0
        if math.isinf(stretch):
            if self.is_up(from_h):
                self.crash(from_h)
            self._replace()
            stretch = self.job.stretch(self.active) if self.active else 1.0
        if math.isinf(stretch):  # not enough spares: it waits for the repair
            self.lost.down_h += to_h - from_h
            self.down_until_h = max(self.down_until_h, to_h + self.job.given.restart_min / 60)
            return
        up_h = min(max(from_h, self.down_until_h), to_h)
        if up_h > from_h:
            self.lost.down_h += up_h - from_h
            self.up_since_h = up_h
        rest = to_h - up_h
        stalled = min(self.stalled.between(up_h, to_h), rest)
        dark = 0.0 if self.active else self.dark.between(up_h, to_h) * (1 - 1 / self.job.stretch_of_a_cut)
        self.lost.stalled_h += stalled
        self.lost.slower_h += (rest - stalled) * (1 - 1 / stretch) + min(dark, rest - stalled)

    def _replace(self) -> None:
        """Replace hosts that a link failure cut off by spare hosts, as far as their segment has any."""
        for failure in [each for each in self.active if each.kind is Kind.LINK]:
            segment = self.job.network.segment(failure.number)
            if self.spares.get(segment, 0) < self.job.given.spare_hosts:
                self.spares[segment] = self.spares.get(segment, 0) + 1
                self.active.remove(failure)


def lost_hours(job: ModelledJob, drawn: Drawn) -> LostHours:
    """Return the losses of the job in a month. Each month begins with all spare hosts available."""
    at_h, stall_s = job.stalls(drawn.flaps)
    deadly = np.isinf(stall_s)
    life = _Life(
        job,
        drawn,
        _Union.of(at_h[~deadly], stall_s[~deadly] / 3600),
        _Union.of(drawn.flaps.at_h, drawn.flaps.dark_s / 3600),
    )
    changes: list[tuple[float, Failure | str]] = [(float(at), _KILL) for at in at_h[deadly]]
    for failure in drawn.failures:
        changes += [(failure.at_h, failure), (failure.until_h, failure)]
    before = 0.0
    for at, what in sorted((change for change in changes if change[0] < MONTH_H), key=lambda change: change[0]):
        life.pass_time(before, at)
        life.change(at, what)
        before = at
    life.pass_time(before, MONTH_H)
    return life.lost
