"""Fault schedule of a drill: active flows at each moment of its faults and their relation to them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.model import Relation
from hpn.failover.faults import PlannedFault
from hpn.failover.faults.moments import Moment, moments
from hpn.scenarios.drill.blast_radius import relations
from hpn.scenarios.drill.spares import ActiveFlows, Change
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.flows.flow import FlowSpec


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """One moment of the schedule."""

    moment: Moment
    change: Change  # caused by the spares that take over now
    relations: Mapping[int, Relation]  # by flow id, after the change


def course(fabric: Fabric, faults: Iterable[PlannedFault], flows: Sequence[FlowSpec]) -> tuple[ScheduleStep, ...]:
    """Return every moment in order of time; ``flows`` are those of the workload with their replacement flows.

    InputError when a target is not in ``fabric``.
    """
    roster = ActiveFlows(flows)
    return tuple(_step(fabric, moment, roster, flows) for moment in moments(faults))


def _step(fabric: Fabric, moment: Moment, roster: ActiveFlows, flows: Sequence[FlowSpec]) -> ScheduleStep:
    change = roster.take_over(moment.takeovers)
    return ScheduleStep(moment, change, relations(fabric, moment.faults, flows, roster.absent))
