"""JSON Schema of a drill file, for editors: ``hpn drill schema``. Pure.

Changes when another model reads a section. The models are the ones that check a file; here they are combined section by
section, as in ``scenarios.drill.load``. The loader refuses every file that this schema refuses. Only the loader checks
ranges of values with units, and rules across sections.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from hpn.failover.analysis.protocol_events import ProtocolEvent
from hpn.failover.faults import FAULTS
from hpn.scenarios.drill.schema import (
    DrillFile,
    OrderExpectation,
    UntouchedExpectation,
    YesOrNoExpectation,
    expectation_model,
    fault_model,
)
from hpn.scenarios.drill.sections import SECTIONS
from hpn.scenarios.expect.metric import Metric, Shape, Traffic
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.selection import Bound
from hpn.testbed.fabric.json_schema import topology_mapping
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.files.json_schema import PATH, YES_OR_NO, Parts, Schema
from hpn.traffic.client.registry import CLIENTS
from hpn.traffic.transport.transports import TRANSPORTS


def drill_schema() -> Schema:
    """Return the schema of a drill file with all known faults, metrics, clients and so on, including plug-ins."""
    parts = Parts()
    top = parts.of(DrillFile)
    top["properties"] |= {
        "topology": _topology(parts),
        "expect": {"type": "array", "minItems": 1, "items": _expectation(parts)},
        **_sections(parts, ""),
    }
    top["properties"]["timeline"]["properties"]["faults"]["items"] = _fault(parts)
    top["properties"]["workload"]["properties"]["client"] = _chosen(parts, "run", CLIENTS)
    of_job = top["properties"]["job"]["properties"]
    of_job |= _sections(parts, "job.")
    of_job["congestion"] = {"type": ["string", "object"]}
    of_job["transport"] = {"anyOf": [{"enum": list(TRANSPORTS)}, of_job["transport"]]}
    of_job["port_recovery"] = {"anyOf": [{"enum": YES_OR_NO}, of_job["port_recovery"]]}
    return parts.file(top, "a drill of hpn")


def _sections(parts: Parts, above: str) -> Schema:
    """Return the sections directly below a path of keys, which ends with a dot."""
    below = {path.removeprefix(above): model for path, model in SECTIONS.items() if path.startswith(above)}
    return {key: parts.of(model) for key, model in below.items() if "." not in key}


def _topology(parts: Parts) -> Schema:
    file = {"type": "string", "pattern": PATH, "description": "a topology file, beside the drill"}
    return {"anyOf": [{"enum": list(PRESETS)}, file, topology_mapping(parts)]}


def _fault(parts: Parts) -> Schema:
    """Return the schema of a timeline entry, which depends on the kind of fault."""
    return _by_word("fault", {kind: parts.of(fault_model(kind)) for kind in FAULTS})


def _chosen(parts: Parts, key: str, registry: Mapping[str, type[BaseModel]]) -> Schema:
    return _by_word(key, {word: parts.of(model) for word, model in registry.items()})


def _by_word(key: str, schemas: Mapping[str, Schema]) -> Schema:
    """Return the schema of a mapping in which the value of ``key`` selects the schema."""
    for word, schema in schemas.items():
        schema["properties"][key] = {"const": word}
    rules = [
        {"if": {"properties": {key: {"const": word}}, "required": [key]}, "then": schema}
        for word, schema in schemas.items()
    ]
    return {"type": "object", "required": [key], "properties": {key: {"enum": list(schemas)}}, "allOf": rules}


def _expectation(parts: Parts) -> Schema:
    """Return the schema of an entry of ``expect``: one metric and its value."""
    of_metrics = {key: _described(_behind(parts, metric), metric.summary) for key, metric in METRICS.items()}
    one = {"minProperties": 1, "maxProperties": 1, "additionalProperties": False}
    return {"type": "object", "properties": of_metrics, **one}


def _behind(parts: Parts, metric: Metric) -> Schema:
    match metric.shape:
        case Shape.LIMITS:
            bounds = [{"required": [bound.value]} for bound in Bound]
            return parts.of(expectation_model(metric)) | {"anyOf": bounds}
        case Shape.YES_NO:
            said = {"enum": YES_OR_NO}
            with_whose = metric.needs.traffic is Traffic.RANKS
            return {"anyOf": [said, parts.of(YesOrNoExpectation)]} if with_whose else said
        case Shape.PARTS:
            return parts.of(UntouchedExpectation)
        case Shape.EVENTS:
            order = parts.of(OrderExpectation)
            order["properties"]["events"] |= {"items": {"enum": list(map(str, ProtocolEvent))}, "minItems": 2}
            return order


def _described(schema: Schema, text: str) -> Schema:
    return {**schema, "description": text} if text else schema
