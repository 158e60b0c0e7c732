"""Keys of a YAML file whose words are those of a registry, plug-ins included. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticKnownError, core_schema

_READ: Mapping[str, bool] = {"off": False, "no": False, "on": True, "yes": True}
"""Words that YAML 1.1 reads as yes or no."""


class OneOf:
    """What makes ``str`` such a key, as ``Annotated[str, OneOf(PATTERNS)]``: asked when a file is read.

    ``first`` are words that may be written beside those of the registry.
    A word that YAML reads as yes or no, such as ``off``, is known as what was read, too.
    """

    def __init__(self, registry: Mapping[str, object], *first: str) -> None:
        self._registry = registry
        self._first = first

    @property
    def words(self) -> tuple[str, ...]:
        """Those that may be written now."""
        return (*self._first, *self._registry)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        """Refuses what ``Literal`` of the words would, with its error."""
        return core_schema.no_info_plain_validator_function(self._checked)

    def __get_pydantic_json_schema__(
        self, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """What ``Literal`` of the words would be."""
        return {"enum": [*self.words, *dict.fromkeys(_READ[word] for word in self.words if word in _READ)]}

    def _checked(self, value: object) -> str:
        word = value
        if isinstance(value, bool):
            word = next((each for each in self.words if _READ.get(each) is value), "")
        if isinstance(word, str) and word in self.words:
            return word
        raise PydanticKnownError("literal_error", {"expected": " or ".join(map(repr, self.words))})
