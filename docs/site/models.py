"""The keys of a YAML file of users, as a table: what each takes, its default and what it means, read from its model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from docs.site.markdown import code, page, plain, prose, table
from hpn.testbed.fabric.switch_spec import Bytes
from hpn.testbed.fabric.values import Rate
from hpn.testbed.files.check import describe, models_in, within_of

_HEAD = ("key", "takes", "default", "")
_RATE, _BYTES = get_args(Rate)[1], get_args(Bytes)[1]


def keys(model: type[BaseModel], *, left_out: Mapping[str, FieldInfo] | None = None) -> str:
    """The table of a model's keys; ``left_out`` those of another that it shares."""
    fields = model.model_fields.items()
    return table(_HEAD, (_row(field.alias or name, field) for name, field in fields if name not in (left_out or {})))


_SHORT = {"a whole number from ": "", "a number from ": "", "a mapping (key: value)": "section", "one of ": ""}
"""What the readers of files say, for a column that has the heading for it."""


def every_key(model: type[BaseModel]) -> str:
    """One table of a model's keys and of those within them, with dots between."""
    return table(_HEAD, _rows(model, ""))


def _rows(model: type[BaseModel], above: str) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        key = f"{above}{field.alias or name}"
        yield _row(key, field)
        for inside in models_in(field.annotation):
            yield from _rows(inside, f"{key}.")


def _row(key: str, field: FieldInfo) -> tuple[str, ...]:
    return code(key), plain(takes(field)), default(field), plain(field.description or "")


def section(model: type[BaseModel], path: str, level: int = 2) -> str:
    """A heading, what the model says of itself and its keys, and the same of each model within it."""
    inside = (section(each, f"{path}.{key}", level + 1) for key, each in _inside(model))
    return page(f"{'#' * level} {path}", prose(model.__doc__ or ""), keys(model), *inside)


def takes(field: FieldInfo) -> str:
    """What may be written, in a few words."""
    if _RATE in field.metadata:
        return "a rate, such as 200G"
    if _BYTES in (*field.metadata, *(mark for each in get_args(field.annotation) for mark in get_args(each))):
        return "bytes, or a size such as 2 MB"
    words = describe(field)
    for long, short in _SHORT.items():
        words = words.replace(long, short)
    return words


def default(field: FieldInfo) -> str:
    """What holds when nothing is written, as a file writes it; 'needed' when something must be."""
    if field.is_required():
        return "needed"
    value = field.default if field.default_factory is None else field.get_default(call_default_factory=True)
    within = within_of(field)
    if value is None or value is PydanticUndefined or value in ([], {}, "") or isinstance(value, BaseModel):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if within is not None:
        return code(within.written(value))
    if _RATE in field.metadata and isinstance(value, int):
        return code(_rate(value))
    return code(str(value.value if isinstance(value, Enum) else value))


def _rate(bps: int) -> str:
    """'200G', as a topology file has it."""
    for unit, factor in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("K", 10**3)):
        if bps % factor == 0:
            return f"{bps // factor}{unit}"
    return str(bps)


def _inside(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    for name, field in model.model_fields.items():
        yield from ((field.alias or name, found) for found in models_in(field.annotation))
