"""The shape of a drill file as JSON Schema, for editors: ``hpn drill schema``. Pure.

Changes when a section is read by another model. The models themselves are those that a file is held against; here they
are put together as ``scenarios.drill.load`` does it, section by section. A file that this refuses, the loader refuses
too; ranges of values with units, and what sections mean together, only the loader checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from failover.analysis.marks import Mark
from failover.faults import FAULTS
from scenarios.drill.schema import (
    DrillFile,
    OrderExpectation,
    UntouchedExpectation,
    YesOrNoExpectation,
    expectation_model,
    fault_model,
)
from scenarios.drill.sections import SECTIONS
from scenarios.expect.asked import Bound
from scenarios.expect.metric import Metric, Shape, Traffic
from scenarios.expect.metrics import METRICS
from testbed.fabric.architectures import ARCHITECTURES
from testbed.fabric.load import TopologyFile
from testbed.fabric.presets import PRESETS
from testbed.files.units import DURATION, PERCENT, SIZE, format_duration, format_percent, format_size
from traffic.client.registry import CLIENTS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_YES_OR_NO = [True, False, "yes", "no", "on", "off"]
"""YAML 1.1, which hpn reads, has words for these; an editor that reads YAML 1.2 takes the words for text."""

_FORMATS: Mapping[str, Callable[[Any], str]] = {
    f"^{DURATION}$": format_duration,
    f"^{PERCENT}$": format_percent,
    f"^{SIZE}$": format_size,
}
Schema = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """As YAML has it: yes and no; and what a plug-in's type cannot say of itself may be anything."""

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        """Yes or no."""
        return {"enum": _YES_OR_NO}

    def handle_invalid_for_json_schema(self, schema: core_schema.CoreSchema, error_info: str) -> JsonSchemaValue:
        """Anything."""
        return {}


def drill_schema() -> Schema:
    """The schema of a drill file, with the faults, metrics, clients, ... that are known now, plug-ins included."""
    parts = _Parts()
    top = parts.of(DrillFile)
    top["properties"] |= {
        "topology": _topology(parts.of(TopologyFile)),
        "expect": {"type": "array", "minItems": 1, "items": _expectation(parts)},
        **_sections(parts, ""),
    }
    top["properties"]["timeline"]["properties"]["faults"]["items"] = _fault(parts)
    top["properties"]["workload"]["properties"]["client"] = _chosen(parts, "run", CLIENTS)
    of_job = top["properties"]["job"]["properties"]
    of_job |= _sections(parts, "job.")
    of_job["congestion"] = {"type": ["string", "object"]}
    found = {**top, "$defs": parts.definitions}
    return {
        "$schema": DIALECT,
        "title": "a drill of hpn",
        **{key: _walked(value, key in _OF_NAMES) for key, value in found.items() if key != "title"},
    }


class _Parts:
    """Schemas of models; what they share lies in ``definitions``."""

    def __init__(self) -> None:
        self.definitions: Schema = {}

    def of(self, model: type[BaseModel]) -> Schema:
        """The schema of one model, to be changed at will."""
        _, found = models_json_schema([(model, "validation")], schema_generator=_Generator)
        shared = dict(found.get("$defs", {}))
        own: Schema = shared.pop(next(name for name, each in shared.items() if each.get("title") == model.__name__))
        self.definitions |= shared
        return own


def _sections(parts: _Parts, above: str) -> Schema:
    """Those right below a path of keys, which ends with its dot."""
    below = {path.removeprefix(above): model for path, model in SECTIONS.items() if path.startswith(above)}
    return {key: parts.of(model) for key, model in below.items() if "." not in key}


def _topology(mapping: Schema) -> Schema:
    mapping["properties"] |= {
        "preset": {"enum": list(PRESETS)},
        "architecture": {"enum": list(ARCHITECTURES)},
    }
    file = {"type": "string", "pattern": r"/|\.ya?ml$", "description": "a topology file, beside the drill"}
    return {"anyOf": [{"enum": list(PRESETS)}, file, mapping]}


def _fault(parts: _Parts) -> Schema:
    """An entry of the timeline: what it takes depends on its kind."""
    return _by_word("fault", {kind: parts.of(fault_model(kind)) for kind in FAULTS})


def _chosen(parts: _Parts, key: str, registry: Mapping[str, type[BaseModel]]) -> Schema:
    return _by_word(key, {word: parts.of(model) for word, model in registry.items()})


def _by_word(key: str, schemas: Mapping[str, Schema]) -> Schema:
    """A mapping of which the word under ``key`` says by what schema it goes."""
    for word, schema in schemas.items():
        schema["properties"][key] = {"const": word}
    rules = [
        {"if": {"properties": {key: {"const": word}}, "required": [key]}, "then": schema}
        for word, schema in schemas.items()
    ]
    return {"type": "object", "required": [key], "properties": {key: {"enum": list(schemas)}}, "allOf": rules}


def _expectation(parts: _Parts) -> Schema:
    """An entry of ``expect``: one metric, and what stands behind it."""
    of_metrics = {key: _described(_behind(parts, metric), metric.summary) for key, metric in METRICS.items()}
    one = {"minProperties": 1, "maxProperties": 1, "additionalProperties": False}
    return {"type": "object", "properties": of_metrics, **one}


def _behind(parts: _Parts, metric: Metric) -> Schema:
    match metric.shape:
        case Shape.LIMITS:
            bounds = [{"required": [bound.value]} for bound in Bound]
            return parts.of(expectation_model(metric)) | {"anyOf": bounds}
        case Shape.YES_NO:
            said = {"enum": _YES_OR_NO}
            with_whose = metric.needs.traffic is Traffic.RANKS
            return {"anyOf": [said, parts.of(YesOrNoExpectation)]} if with_whose else said
        case Shape.PARTS:
            return parts.of(UntouchedExpectation)
        case Shape.EVENTS:
            order = parts.of(OrderExpectation)
            order["properties"]["events"] |= {"items": {"enum": list(map(str, Mark))}, "minItems": 2}
            return order


def _described(schema: Schema, text: str) -> Schema:
    return {**schema, "description": text} if text else schema


_OF_NAMES = ("properties", "$defs")
"""Keys of JSON Schema behind which keys are those of a file."""


def _walked(node: Any, names: bool = False) -> Any:
    """Without titles that say the key again, and defaults as a file would write them; ``names``: of ``_OF_NAMES``."""
    if isinstance(node, list):
        return [_walked(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _walked(value, key in _OF_NAMES and not names)
        for key, value in node.items()
        if names or key not in ("title", "default", "examples")
    }
    if not names and "default" in node and (text := _default(node)) is not None:
        kept["default"] = text
    return kept


def _default(node: Schema) -> Any:
    """As a file writes it; None: nothing that is worth to be said."""
    default = node["default"]
    formats = (_FORMATS.get(each.get("pattern", "")) for each in _choices(node))
    found = next((each for each in formats if each is not None), None)
    if found is not None and isinstance(default, int | float):  # ns, bytes, shares of 1
        return found(default)
    return default if isinstance(default, str | int | float) else None


def _choices(node: Schema) -> Iterable[Schema]:
    return (node, *node.get("anyOf", ()))
