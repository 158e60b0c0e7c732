"""Convert a drill to the plain values stored in its run folder, for all kinds of faults, metrics and clients.

Changes when a drill file gets another setting that a reader of a run must know. Runs after the measurement.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum

from pydantic import JsonValue, TypeAdapter

from hpn.failover.faults import Fault, PlannedFault, parameters
from hpn.results.run.drill import AskedDrill, AskedFault, AskedLimit, PlannedMoment
from hpn.results.run.identity import digest_of
from hpn.scenarios.drill.describe import fault_in_words, put_elsewhere, traffic_in_words
from hpn.scenarios.drill.job import Checkpointing
from hpn.scenarios.drill.job_settings import told
from hpn.scenarios.drill.model import Drill, Workload
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.run.client_site import told_of
from hpn.testbed.fabric.model import Fabric

_WORKLOAD = TypeAdapter(Workload)
_STORED_AS: Mapping[type, str] = {Checkpointing: "Saving"}
"""Types whose name in run folders is a former one: a digest of their settings does not change with our names."""
_MOST_ITEMS = 100


def asked_of(drill: Drill, fabric: Fabric) -> AskedDrill:
    """Return the drill as it ran on ``fabric``."""
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
        asks=_asks(drill),
        seed=drill.topology.seed if drill.workload.seed is None else drill.workload.seed,
        other_fabric=put_elsewhere(drill),
    )


def _asks(drill: Drill) -> dict[str, JsonValue]:
    """Return the settings that identify a job, a client and what is located while streams run.

    Excluded are a client's deadline, which depends on the machine, and the job's seed, which is stored separately.
    """
    found: dict[str, JsonValue] = {}
    if drill.job is not None:
        found["job"] = _set(replace(drill.job, seed=None))
    if drill.locating is not None:
        found["locate"] = _set(drill.locating)
    if drill.client is not None:
        found["client"] = drill.client.model_dump(mode="json", exclude_defaults=True, exclude={"deadline"})
    return found


def _given(value: object) -> JsonValue:
    """Return a value as plain data; a long list, such as the steps of a trace, is replaced by its digest."""
    match value:
        case Enum():
            return _given(value.value)
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): _given(each) for key, each in value.items()}
        case list() | tuple():
            items = [_given(each) for each in value]
            return items if len(items) <= _MOST_ITEMS else f"{len(items)} of digest {digest_of(items)}"
    return {_STORED_AS.get(type(value), type(value).__name__): _set(value)}


def _set(value: object) -> dict[str, JsonValue]:
    """Return the fields of a dataclass that differ from their defaults, without the name of a file."""
    if not is_dataclass(value):
        return {}
    found = ((field.name, getattr(value, field.name), field.default) for field in fields(value))
    return {name: _given(each) for name, each, usual in found if each != usual and name != "file"}


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
        timers_alone_notice=fault.timers_alone_notice,
    )


def _parameters(fault: Fault) -> Mapping[str, str | int | float]:
    """Return the parameters of a fault by their keys in a drill file."""
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
