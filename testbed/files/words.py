"""Keys of a YAML file whose values are names in a registry, plug-ins included. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticKnownError, core_schema

_READ: Mapping[str, bool] = {"off": False, "no": False, "on": True, "yes": True}
"""Words that YAML 1.1 reads as yes or no."""


class OneOf:
    """Annotation that restricts ``str`` to such names, as ``Annotated[str, OneOf(PATTERNS)]``; checked at reading.

    ``first`` are words that are valid in addition to those of the registry.
    If YAML reads a word as yes or no, such as ``off``, that boolean is accepted too.
    """

    def __init__(self, registry: Mapping[str, object], *first: str) -> None:
        self._registry = registry
        self._first = first

    @property
    def words(self) -> tuple[str, ...]:
        """Words that are valid at present."""
        return (*self._first, *self._registry)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        """Reject what ``Literal`` of the words would reject, with its error."""
        return core_schema.no_info_plain_validator_function(self._checked)

    def __get_pydantic_json_schema__(
        self, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema that ``Literal`` of the words would have."""
        return {"enum": [*self.words, *dict.fromkeys(_READ[word] for word in self.words if word in _READ)]}

    def _checked(self, value: object) -> str:
        word = value
        if isinstance(value, bool):
            word = next((each for each in self.words if _READ.get(each) is value), "")
        if isinstance(word, str) and word in self.words:
            return word
        raise PydanticKnownError("literal_error", {"expected": " or ".join(map(repr, self.words))})
