"""What a run is held against: one limit on one metric, where and of which flows. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from failover.analysis.marks import Mark
from results.repeats.statistic import Statistic
from scenarios.expect.metric import Metric, Slowed, Unit
from scenarios.expect.scope import EVERYWHERE, Scope
from testbed.files.units import format_duration, format_percent

VERY_SLOW = 20
"""From here on a slow kernel is an emulated one."""
STRETCH = 4


class Flows(StrEnum):
    """Which flows an expectation is about, by their relation to the fault."""

    ALL = "all"
    HIT = "hit"  # an end of the flow is a NIC that lost a port
    SENDER = "sender"  # its source is: direction up, the LAG decides
    RECEIVER = "receiver"  # its destination is: direction down, routes and path control decide
    TRANSIT = "transit"  # a path it may take is hit, its NICs are not
    OTHERS = "others"  # the control group


class At(StrEnum):
    """Which edges of the faults an expectation is about."""

    FAILURE = "failure"
    REPAIR = "repair"
    ANY = "any"


class Bound(StrEnum):
    """How the limit is meant; the value is the key in a drill file."""

    BELOW = "below"
    AT_MOST = "at_most"
    ABOVE = "above"
    AT_LEAST = "at_least"

    @property
    def is_upper(self) -> bool:
        """Whether a larger figure is a worse one."""
        return self in {Bound.BELOW, Bound.AT_MOST}


@dataclass(frozen=True, slots=True)
class Expectation:
    """One limit on one metric. ``limit`` is in ns, a count, a share (1.0 = 100 %), a ratio, or 1/0."""

    metric: Metric
    bound: Bound
    limit: float
    flows: Flows = Flows.ALL
    edge: At = At.ANY
    fault: str | None = None  # only the edges of this fault
    line: int = 0  # in the drill file
    scope: Scope = EVERYWHERE  # only flows in it; of ``untouched``: what must feel nothing
    events: tuple[Mark, ...] = ()  # of ``order``
    written: float | None = None  # the file's limit, where a slow kernel has another
    over: Statistic = Statistic.EVERY  # what the limit holds for when the drill is repeated

    @property
    def text(self) -> str:
        """As a sentence: 'worst outage of hit flows at failure below 50 ms'."""
        return self._text if self.over is Statistic.EVERY else f"{self._text}, {self.over} over repeats"

    @property
    def _text(self) -> str:
        if self.metric.sentence is not None:
            return self.metric.sentence(self)
        words = [self.metric.words]
        flows = "other" if self.flows is Flows.OTHERS else self.flows
        words += [f"of {flows} flows"] if self.metric.by_flow and self.flows is not Flows.ALL else []
        words += [f"in {', '.join(self.scope.words)}"] if self.scope else []
        return " ".join([*words, *self.when, self.bound.value.replace("_", " "), self.limit_text])

    def slowed(self, times: int, queue_pairs: float) -> Expectation:
        """Return the expectation for a ``times``-th of the packets, and share of queue pairs: counts in proportion.

        From 20 times on upper limits on times, and on what is lost in a time, are stretched too.
        """
        upper = self.bound.is_upper
        stretch = STRETCH if upper and times >= VERY_SLOW else 1
        match self.metric.slowed:
            case Slowed.STRETCHED:
                limit = self.limit * stretch
            case Slowed.PER_QUEUE_PAIR:
                limit = _whole(self.limit * queue_pairs, upper)
            case Slowed.PER_PACKET:
                limit = _whole(self.limit * stretch / times, upper)
            case Slowed.NOT:
                limit = self.limit
        return self if limit == self.limit else replace(self, limit=limit, written=self.limit)

    @property
    def when(self) -> list[str]:
        """Fault and edge: 'of cut', 'at failure'."""
        return [
            *([f"of {self.fault}"] if self.fault else []),
            *([f"at {self.edge}"] if self.edge is not At.ANY else []),
        ]

    @property
    def limit_text(self) -> str:
        """The limit with its unit; one that is not the file's says so."""
        written = f" (slow kernel; the file: {self._shown(self.written)})" if self.written is not None else ""
        return self._shown(self.limit) + written

    def _shown(self, limit: float) -> str:
        match self.metric.unit:
            case Unit.MS:
                return format_duration(int(limit))
            case Unit.SHARE:
                return f"{format_percent(limit)} of before"
            case Unit.RATIO:
                return f"{limit:g} x"
            case Unit.RATE:
                return f"{limit / 1e6:g} Mbit/s"
        return f"{limit:.0f}"


def _whole(limit: float, upper: bool) -> int:
    """Round a limit on a count to the generous side; something that must be there at all still must."""
    return math.ceil(limit) if upper else max(math.floor(limit), min(math.ceil(limit), 1))
