"""JSON Schema of YAML file models, for editors. Pure.

Changes when another form of value needs its own representation. The schema of each kind of file is composed alongside
that kind's reader. A loader rejects every file that its schema rejects; the schema does not know every rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from hpn.testbed.files.units import DURATION, PERCENT, SIZE, format_duration, format_percent, format_size

DIALECT = "https://json-schema.org/draft/2020-12/schema"
YES_OR_NO = [True, False, "yes", "no", "on", "off"]
"""Booleans in YAML 1.1, which hpn reads, include these words; an editor that reads YAML 1.2 takes them for text."""
PATH = r"/|\.ya?ml$"
"""Pattern of a text that names a file where a name is also accepted."""

_FORMATS: Mapping[str, Callable[[Any], str]] = {
    f"^{DURATION}$": format_duration,
    f"^{PERCENT}$": format_percent,
    f"^{SIZE}$": format_size,
}
Schema = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """JSON Schema generator for YAML: adds yes and no, and accepts anything for a plug-in type without a schema."""

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        """Return the schema of yes or no."""
        return {"enum": YES_OR_NO}

    def handle_invalid_for_json_schema(self, schema: core_schema.CoreSchema, error_info: str) -> JsonSchemaValue:
        """Return the schema that accepts anything."""
        return {}


class Parts:
    """Schemas of models; shared parts are in ``definitions``."""

    def __init__(self) -> None:
        self.definitions: Schema = {}

    def of(self, model: type[BaseModel]) -> Schema:
        """Return the schema of one model; the caller may modify it."""
        _, found = models_json_schema([(model, "validation")], schema_generator=_Generator)
        shared = dict(found.get("$defs", {}))
        own: Schema = shared.pop(next(name for name, each in shared.items() if each.get("title") == model.__name__))
        self.definitions |= shared
        return own

    def file(self, top: Schema, title: str) -> Schema:
        """Return the schema of a whole file, from its top mapping and the definitions."""
        found = {**top, "$defs": self.definitions}
        walked = {key: _walked(value, key in _OF_NAMES) for key, value in found.items() if key != "title"}
        return {"$schema": DIALECT, "title": title, **walked}


_OF_NAMES = ("properties", "$defs")
"""Keys of JSON Schema whose values are mappings by the file's own keys."""


def _walked(node: Any, names: bool = False) -> Any:
    """Drop titles that repeat the key, and write defaults as files do; ``names``: the node is under ``_OF_NAMES``."""
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
    """Return the default as a file writes it; None if it is not worth showing."""
    default = node["default"]
    formats = (_FORMATS.get(each.get("pattern", "")) for each in _choices(node))
    found = next((each for each in formats if each is not None), None)
    if found is not None and isinstance(default, int | float):  # ns, bytes, shares of 1
        return found(default)
    return default if isinstance(default, str | int | float) else None


def _choices(node: Schema) -> Iterable[Schema]:
    return (node, *node.get("anyOf", ()))
