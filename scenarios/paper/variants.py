"""Drill made of another one with some values changed, for claims that are answered by a curve or a region. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import yaml
from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Variant:
    """Drill ``name``: ``drill`` with ``changes``, values by dotted keys such as 'timeline.faults.0.count'."""

    name: str
    drill: str
    changes: Mapping[str, JsonValue]

    def text(self, original: str) -> str:
        """Return the file of the variant from that of its drill. KeyError for a key that the drill does not have."""
        data: dict[str, JsonValue] = yaml.safe_load(original)
        for key, value in {"drill": self.name, **self.changes}.items():
            _set(data, key.split("."), value)
        told = ", ".join(f"{key} {value}" for key, value in self.changes.items())
        return f"# {self.drill} with {told}\n{yaml.safe_dump(data, sort_keys=False, width=110)}"


def _set(data: JsonValue, keys: list[str], value: JsonValue) -> None:
    for key in keys[:-1]:
        data = _at(data, key)
    if isinstance(data, list):
        data[int(keys[-1])] = value
        return
    _at(data, keys[-1])
    if isinstance(data, dict):
        data[keys[-1]] = value


def _at(data: JsonValue, key: str) -> JsonValue:
    if isinstance(data, list):
        return data[int(key)]
    if isinstance(data, dict):
        return data[key]
    raise KeyError(key)
