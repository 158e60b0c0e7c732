"""Faults of a drill as steps of a sequence, the form that campaigns draw, shrink and write. Pure."""

from __future__ import annotations

from enum import Enum

from hpn.failover.faults import FAULTS, PlannedFault, parameters
from hpn.scenarios.campaign.plan import FaultSequence, FaultStep, Value
from hpn.scenarios.drill.model import Drill


def step_of(planned: PlannedFault) -> FaultStep:
    """Return a planned fault as a step; arguments at their defaults are left out."""
    fault = planned.fault
    arguments: list[tuple[str, Value]] = []
    for name, parameter in parameters(FAULTS[fault.KIND]).items():
        value = getattr(fault, name)
        plain: Value = value.value if isinstance(value, Enum) else value
        if value != parameter.default:
            arguments.append((parameter.key, plain))
    return FaultStep(fault.KIND, fault.target, planned.at_ns, planned.for_ns, tuple(arguments))


def sequence_of(drill: Drill) -> FaultSequence:
    """Return the faults of a drill, in the order of its file."""
    steps = tuple(step_of(planned) for planned in drill.timeline.faults)
    return FaultSequence(0, steps, drill.timeline.settle_ns)
