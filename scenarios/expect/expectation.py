"""What a run is held against: one limit on one metric, where and of which flows. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from failover.analysis.marks import Mark
from results.repeats.statistic import Statistic
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


class Unit(StrEnum):
    """The unit of a limit."""

    MS = "ms"
    COUNT = ""
    SHARE = "%"
    RATIO = "x"
    YES = "yes"


class Metric(StrEnum):
    """What can be expected; the value is the key in a drill file."""

    WORST_OUTAGE = "worst_outage"  # the longest outage of a flow: missing packets / rate
    MEDIAN_OUTAGE = "median_outage"  # over the flows chosen
    OUTAGE_P95 = "outage_p95"  # over the flows chosen, a value that occurred (nearest rank)
    WORST_IMPAIRMENT = "worst_impairment"  # the same with packets that came too late counted as missing
    WORST_RECEIVE_GAP = "worst_receive_gap"  # the longest time in which nothing of a flow arrived
    PACKETS_LOST = "packets_lost"
    PACKETS_IMPAIRED = "packets_impaired"  # lost, corrupted or late
    FLOWS_WITH_LOSS = "flows_with_loss"
    FLOWS_UNRECOVERED = "flows_unrecovered"  # not back before the next edge
    QUEUE_PAIR_DEATHS = "queue_pair_deaths"  # retries exceeded
    GOODPUT_DURING = "goodput_during"  # from the edge to the next, of before; the worst NIC counts
    GOODPUT_AFTER = "goodput_after"  # the last part of that window, of before; the worst NIC counts
    DETECT = "detect"  # phases, see failover.analysis.model.Phases
    SWITCH = "switch"
    CONVERGE = "converge"
    RECOVER = "recover"
    CONVERGED = "converged"  # injection to the last change of any protocol's state in the lab; then quiet
    UNTOUCHED = "untouched"  # flows that felt something although they have to do with what must feel nothing
    ORDER = "order"  # the smallest time between two events that must follow each other
    JOB_DOWNTIME = "job_downtime"  # death of a host to the moment at which all that stands in for it is at work
    QUEUE_P99 = "queue_p99"  # of the readings of a port's queue, at the port where it is longest
    QUEUE_WORST = "queue_worst"  # the longest queue that was read
    PORT_IMBALANCE = "port_imbalance"  # load of the ports towards a NIC, the busiest over the least busy
    NOISE_FLOOR = "noise_floor"  # the largest outage reported while nothing was wrong
    STATE_RESTORED = "state_restored"  # after the drill the lab equals its state before

    @property
    def unit(self) -> Unit:
        """The unit of its limit."""
        return _UNITS.get(self, Unit.MS)

    @property
    def by_flow(self) -> bool:
        """Takes ``flows``."""
        return self.by_edge and self not in PHASES | OF_THE_LAB

    @property
    def by_edge(self) -> bool:
        """Takes ``edge`` and ``fault``."""
        return self not in OF_PORTS | {Metric.NOISE_FLOOR, Metric.STATE_RESTORED}

    @property
    def needs_fault(self) -> bool:
        """Means nothing in a drill without faults."""
        of_flows = {Metric.GOODPUT_DURING, Metric.GOODPUT_AFTER, Metric.FLOWS_UNRECOVERED}
        return self in PHASES | OF_THE_LAB | of_flows | {Metric.WORST_IMPAIRMENT, Metric.WORST_RECEIVE_GAP}

    @property
    def words(self) -> str:
        """'worst outage'."""
        return self.value.replace("_", " ")


_UNITS: Mapping[Metric, Unit] = {
    Metric.PACKETS_LOST: Unit.COUNT,
    Metric.PACKETS_IMPAIRED: Unit.COUNT,
    Metric.FLOWS_WITH_LOSS: Unit.COUNT,
    Metric.FLOWS_UNRECOVERED: Unit.COUNT,
    Metric.QUEUE_PAIR_DEATHS: Unit.COUNT,
    Metric.UNTOUCHED: Unit.COUNT,
    Metric.GOODPUT_DURING: Unit.SHARE,
    Metric.GOODPUT_AFTER: Unit.SHARE,
    Metric.PORT_IMBALANCE: Unit.RATIO,
    Metric.STATE_RESTORED: Unit.YES,
}
PHASES = frozenset({Metric.DETECT, Metric.SWITCH, Metric.CONVERGE, Metric.RECOVER})
OF_THE_LAB = frozenset({Metric.CONVERGED, Metric.UNTOUCHED, Metric.ORDER, Metric.JOB_DOWNTIME})
OF_PORTS = frozenset({Metric.QUEUE_P99, Metric.QUEUE_WORST, Metric.PORT_IMBALANCE})
"""Taken from what is sampled at ports."""
OF_QUEUE_PAIRS = frozenset({Metric.FLOWS_WITH_LOSS, Metric.FLOWS_UNRECOVERED, Metric.QUEUE_PAIR_DEATHS})
OUTAGES = frozenset(
    {
        Metric.WORST_OUTAGE,
        Metric.MEDIAN_OUTAGE,
        Metric.OUTAGE_P95,
        Metric.WORST_IMPAIRMENT,
        Metric.WORST_RECEIVE_GAP,
    }
)


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
        match self.metric:
            case Metric.STATE_RESTORED:
                return "state restored" if self.limit else "state not restored"
            case Metric.UNTOUCHED:
                return " ".join([", ".join(self.scope.words), "untouched", *self._when])
            case Metric.ORDER:
                return " ".join(["order", ", ".join(self.events), *self._when])
        words = [self.metric.words]
        flows = "other" if self.flows is Flows.OTHERS else self.flows
        words += [f"of {flows} flows"] if self.metric.by_flow and self.flows is not Flows.ALL else []
        words += [f"in {', '.join(self.scope.words)}"] if self.scope else []
        return " ".join([*words, *self._when, self.bound.value.replace("_", " "), self.limit_text])

    def slowed(self, times: int, queue_pairs: float) -> Expectation:
        """For a kernel that gets a ``times``-th of the packets, and so much of the queue pairs: counts in proportion.

        From 20 times on upper limits on times, and on what is lost in a time, are stretched too.
        """
        upper = self.bound.is_upper
        stretch = STRETCH if upper and times >= VERY_SLOW else 1
        if self.metric.unit is Unit.MS:
            limit = self.limit * stretch
        elif self.metric in OF_QUEUE_PAIRS:
            limit = _whole(self.limit * queue_pairs, upper)
        elif self.metric in {Metric.PACKETS_LOST, Metric.PACKETS_IMPAIRED}:
            limit = _whole(self.limit * stretch / times, upper)
        else:
            limit = self.limit
        return self if limit == self.limit else replace(self, limit=limit, written=self.limit)

    @property
    def _when(self) -> list[str]:
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
        return f"{limit:.0f}"


def _whole(limit: float, upper: bool) -> int:
    """A limit on a count, rounded to the generous side; something that must be there at all still must."""
    return math.ceil(limit) if upper else max(math.floor(limit), min(math.ceil(limit), 1))
