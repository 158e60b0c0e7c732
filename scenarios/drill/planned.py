"""Planned run: a drill laid out on its fabric, each part computed once. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hpn.scenarios.drill.job import plan_of
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import queue_pairs_of
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.jobengine.plan import JobPlan


@dataclass(frozen=True)
class PlannedRun:
    """Everything that follows from a drill alone; session, runner and judging share it.

    A loaded drill has been checked, so that none of it raises InputError.
    """

    drill: Drill

    @cached_property
    def fabric(self) -> Fabric:
        """Fabric of the drill's topology."""
        return build(self.drill.topology)

    @cached_property
    def job(self) -> JobPlan | None:
        """Layout of its job; None without a job."""
        return None if self.drill.job is None else plan_of(self.drill.job, self.fabric)

    @cached_property
    def flows(self) -> tuple[FlowSpec, ...]:
        """Flows of its workload, or the queue pairs of its job."""
        return queue_pairs_of(self.drill, self.fabric) if self.job is None else self.job.flows
