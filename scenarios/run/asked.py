"""A drill as its run folder has it: plain values, whatever kinds of faults, metrics and clients there are.

Changes when a drill file says something more that a reader of a run must know. Runs after the measurement.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pydantic import TypeAdapter

from failover.faults import Fault, PlannedFault, parameters
from results.run.drill import AskedDrill, AskedFault, AskedLimit, PlannedMoment
from scenarios.drill.describe import fault_in_words, put_elsewhere, traffic_in_words
from scenarios.drill.job import told
from scenarios.drill.model import Drill, Workload
from scenarios.expect.expectation import Expectation
from scenarios.run.client_site import told_of
from testbed.fabric.model import Fabric

_WORKLOAD = TypeAdapter(Workload)


def asked_of(drill: Drill, fabric: Fabric) -> AskedDrill:
    """The drill as it ran on ``fabric``."""
    return AskedDrill(
        name=drill.name,
        summary=drill.summary,
        description=drill.description,
        source=os.path.basename(drill.source),
        profile=drill.profile.value,
        healthy_ns=drill.timeline.healthy_ns,
        end_ns=drill.timeline.end_ns,
        delay_threshold_ns=drill.delay_threshold_ns,
        faults=tuple(_fault(planned) for planned in drill.timeline.faults),
        expects=tuple(_limit(expectation) for expectation in drill.expectations),
        traffic=tuple(traffic_in_words(drill, fabric)),
        workload=_WORKLOAD.dump_python(drill.workload, mode="json") if drill.streams else {},
        job={} if drill.job is None else told(drill.job, fabric),
        client={} if drill.client is None else told_of(drill.client),
        other_fabric=put_elsewhere(drill),
    )


def _fault(planned: PlannedFault) -> AskedFault:
    fault = planned.fault
    return AskedFault(
        id=planned.id,
        kind=fault.KIND,
        target=fault.target,
        parameters=_parameters(fault),
        moments=tuple(
            PlannedMoment(edge.at_ns, edge.kind.value, edge.index, fault_in_words(edge.part or fault))
            for edge in planned.edges
        ),
    )


def _parameters(fault: Fault) -> Mapping[str, str | int | float]:
    """By the words of a drill file."""
    values = {p.key: getattr(fault, name) for name, p in parameters(type(fault)).items()}
    return {key: value if isinstance(value, int | float) else str(value) for key, value in values.items()}


def _limit(expectation: Expectation) -> AskedLimit:
    return AskedLimit(
        text=expectation.text,
        metric=expectation.metric.key,
        bound=expectation.bound.value,
        limit=expectation.limit,
        unit=expectation.metric.unit.value,
        fault=expectation.fault,
        edge=expectation.edge.value,
    )
