"""Models of YAML files as JSON Schema, for editors. Pure.

Changes when another form of value needs words of its own. What the schema of each kind of file is made of stands beside
the reader of that kind. A file that a schema refuses, its loader refuses too; a schema does not know every rule.
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
"""YAML 1.1, which hpn reads, has words for these; an editor that reads YAML 1.2 takes the words for text."""
PATH = r"/|\.ya?ml$"
"""The form of a text that names a file where a name could stand."""

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
        return {"enum": YES_OR_NO}

    def handle_invalid_for_json_schema(self, schema: core_schema.CoreSchema, error_info: str) -> JsonSchemaValue:
        """Anything."""
        return {}


class Parts:
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

    def file(self, top: Schema, title: str) -> Schema:
        """The schema of a whole file, of its top mapping and the definitions."""
        found = {**top, "$defs": self.definitions}
        walked = {key: _walked(value, key in _OF_NAMES) for key, value in found.items() if key != "title"}
        return {"$schema": DIALECT, "title": title, **walked}


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
