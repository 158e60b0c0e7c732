"""Keys of a YAML file whose words are those of a registry, plug-ins included. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticKnownError, core_schema


class OneOf:
    """What makes ``str`` such a key, as ``Annotated[str, OneOf(PATTERNS)]``: asked when a file is read.

    ``first`` are words that may be written beside those of the registry.
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
        return {"enum": list(self.words)}

    def _checked(self, value: object) -> str:
        if isinstance(value, str) and value in self.words:
            return value
        raise PydanticKnownError("literal_error", {"expected": " or ".join(map(repr, self.words))})
