"""Expectation of a run: one limit on one metric, with its place and flows. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from hpn.failover.analysis.phrases import plain
from hpn.failover.analysis.protocol_events import ProtocolEvent
from hpn.results.judge.repeats.statistic import Statistic
from hpn.scenarios.expect.metric import Metric, Slowed, Unit
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.scope import EVERYWHERE, Scope
from hpn.scenarios.expect.selection import At, Bound, Flows, Whose
from hpn.testbed.files.units import format_duration, format_percent

if TYPE_CHECKING:
    from pydantic_core.core_schema import CoreSchema

VERY_SLOW = 20
"""Slow-down factor of an emulated kernel, and above."""
STRETCH = 4


class _InFiles:
    """Serialization of a metric in the files of a run: its key."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            _found, serialization=core_schema.plain_serializer_function_ser_schema(lambda metric: metric.key)
        )


def _found(key: object) -> Metric:
    """Return the metric for a key, or a metric unchanged. ValueError for an unknown key."""
    if isinstance(key, Metric):
        return key
    if not isinstance(key, str) or key not in METRICS:
        raise ValueError(f"{key!r} is no metric")
    return METRICS[key]


@dataclass(frozen=True, slots=True)
class Expectation:
    """One limit on one metric. ``limit`` is in ns, a count, a share (1.0 = 100 %), a ratio, or 1/0."""

    metric: Annotated[Metric, _InFiles()]
    bound: Bound
    limit: float
    flows: Flows = Flows.ALL
    edge: At = At.ANY
    fault: str | None = None  # only edges of this fault
    line: int = 0  # in the drill file
    scope: Scope = EVERYWHERE  # only flows in it; for ``untouched``: parts without any effect
    events: tuple[ProtocolEvent, ...] = ()  # for ``order``
    written: float | None = None  # limit in the file, if a slow kernel has another
    over: Statistic = Statistic.EVERY  # statistic over repeats of the drill
    whose: Whose | None = None  # owner of the iterations, where a client runs alongside a job

    @property
    def text(self) -> str:
        """Sentence: 'worst outage of hit flows at failure below 50 ms'."""
        return self._text if self.over is Statistic.EVERY else f"{self._text}, {self.over} over repeats"

    @property
    def _text(self) -> str:
        if self.metric.sentence is not None:
            return self.metric.sentence(self)
        words = [self.metric.words]
        flows = "other" if self.flows is Flows.OTHERS else self.flows
        words += [f"of the {self.whose}"] if self.whose is not None else []
        words += [f"of {flows} flows"] if self.metric.by_flow and self.flows is not Flows.ALL else []
        words += [f"in {', '.join(self.scope.words)}"] if self.scope else []
        return " ".join([*words, *self.when, self.bound.value.replace("_", " "), self.limit_text])

    def slowed(self, times: int, queue_pairs: float) -> Expectation:
        """Return the expectation for 1/``times`` of the packets and a share of the queue pairs: counts in proportion.

        From 20 times on, upper limits on times, and on losses during a time, are also stretched.
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
    def over_record(self) -> bool:
        """True if flows are counted over the whole record.

        A flow touched by any edge then does not belong to the other flows.
        """
        anywhere = not self.scope.planes  # flows change planes during a run
        return self.metric.over_record and self.edge is At.ANY and self.fault is None and anywhere

    @property
    def when(self) -> list[str]:
        """Fault and edge as words: 'of cut', 'at failure'."""
        return [
            *([f"of {self.fault}"] if self.fault else []),
            *([f"at {self.edge}"] if self.edge is not At.ANY else []),
        ]

    @property
    def limit_text(self) -> str:
        """Limit with its unit; a limit that differs from the file says so."""
        written = f" (slow kernel; the file: {self._shown(self.written)})" if self.written is not None else ""
        return self._shown(self.limit) + written

    def _shown(self, limit: float) -> str:
        match self.metric.unit:
            case Unit.MS:
                return format_duration(int(limit))
            case Unit.SHARE:
                return format_percent(limit) + " of before" * self.metric.needs.fault
            case Unit.RATIO:
                return f"{limit:g} x"
            case Unit.RATE:
                return f"{plain(limit / 1e6, 6)} Mbit/s"
        return f"{limit:.0f}"


def _whole(limit: float, upper: bool) -> int:
    """Round a limit on a count to the lenient side; a limit above zero never becomes zero."""
    return math.ceil(limit) if upper else max(math.floor(limit), min(math.ceil(limit), 1))
