"""Checking plain YAML data against a pydantic model; a mistake becomes ``file:line: problem; what to write``.

pydantic finds the mistakes; this module describes them in the file's own terms. The text after the ';' comes from
the field itself: its type, its limits, its choices, its first example.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import Document, Plain, Where, shorten
from hpn.testbed.files.units import Within
from hpn.testbed.files.words import OneOf

Model = TypeVar("Model", bound=BaseModel)

_WORDS: Mapping[type, str] = {bool: "yes or no", int: "a whole number", float: "a number", str: "text"}
_BY_TYPE = {
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "list_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
}


class Mistakes:
    """Mistakes of one document, collected to be reported together and in the order of their lines."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._found: list[tuple[int, str]] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, where: Where, text: str) -> None:
        """Record one mistake at a location."""
        self._found.append((self.document.line(where), text))

    def add_all(self, where: Where, error: InputError, prefix: str = "") -> None:
        """Record the problems of an error from elsewhere for the value at a location."""
        for problem in error.problems:
            self.add(where, prefix + problem)

    def check(self, model: type[Model], data: Plain, at: Where = ()) -> Model | None:
        """Return ``data``, located at ``at``, as a ``model``; None if it records mistakes."""
        try:
            return model.model_validate(data, strict=True)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                mistake = _Mistake(model, at, data, detail)
                self.add(mistake.where, mistake.text)
        return None

    def error(self) -> InputError:
        """Return an error with all recorded mistakes, to be raised."""
        name = self.document.name
        return InputError([f"{name}:{line}: {text}" for line, text in sorted(dict.fromkeys(self._found))])


def check(document: Document, model: type[Model]) -> Model:
    """Validate a whole document as a ``model``. InputError with all mistakes."""
    mistakes = Mistakes(document)
    found = mistakes.check(model, document.data)
    if found is None:
        raise mistakes.error()
    return found


def dotted(where: Where) -> str:
    """Format a location: 'timeline.faults[0].target'."""
    text = ""
    for step in where:
        name = shorten(step, 60, quoted=False)
        text += f"[{name}]" if isinstance(step, int) else f".{name}" if text else name
    return text


def did_you_mean(name: str, known: Iterable[str], what: str = "it takes") -> str:
    """Return 'did you mean X?' or, when no name is similar, list all of ``known``; a plug-in may bring more of some."""
    names = list(known)
    near = get_close_matches(name, names, n=2, cutoff=0.65)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = ", or load its plug-in: hpn --plugin FOLDER" if isinstance(known, Registry) else ""
    return f"{what} {', '.join(names)}{more}"


class _Mistake:
    """One pydantic error, located in the document and put into words."""

    def __init__(self, model: type[BaseModel], at: Where, data: Plain, detail: ErrorDetails) -> None:
        self._detail = detail
        self._kind = detail["type"]
        steps, self._value = _resolve(data, detail["loc"])
        self.where = (*at, *steps)
        self._field, self._models = _follow(model, detail["loc"])
        self.text = self._say()

    def _say(self) -> str:
        match self._kind:
            case "extra_forbidden":
                return self._unknown_key()
            case "missing":
                return self._missing()
            case "too_short" | "string_too_short":
                return f"{self._name()} is empty; write {_example(self._field)}"
            case "string_too_long":
                return f"{self._name()} is longer than {self._detail['ctx']['max_length']} characters; shorten it"
            case "value_error":
                return f"{self._name()}: {self._detail['ctx']['error']}"
        return f"{self._name()} is {shorten(self._value)}; write {self._expected()}"

    def _name(self) -> str:
        return dotted(self.where) or "the file"

    def _unknown_key(self) -> str:
        key = str(self._detail["loc"][-1])
        known = {_key(name, field): 0 for model in self._models for name, field in model.model_fields.items()}
        around = dotted(self.where[:-1])
        return f"unknown key {shorten(key)}{f' in {around}' if around else ''}; {did_you_mean(key, known)}"

    def _missing(self) -> str:
        key = str(self._detail["loc"][-1])
        around = f" in {dotted(self.where)}" if self.where else ""
        return f"{key!r} is missing{around}; add '{key}: {_example(self._field)}'"

    def _expected(self) -> str:
        if self._field is None:
            return _BY_TYPE.get(self._kind) or "something else: " + shorten(self._detail["msg"], 100, quoted=False)
        expected = describe(self._field)
        choices = _choices(self._field)
        if len(choices) > 1 and isinstance(self._value, str) and (near := get_close_matches(self._value, choices, n=1)):
            return f"{expected} (did you mean {near[0]}?)"
        return expected


def describe(field: FieldInfo) -> str:
    """Describe the values that a field accepts: 'a whole number from 1 to 64'."""
    if choices := _choices(field):
        return f"one of {', '.join(choices)}" if len(choices) > 1 else choices[0]
    if within := within_of(field):
        return within.words
    annotation = _bare(field.annotation)
    low, high, pattern = _limit(field, "ge"), _limit(field, "le"), _limit(field, "pattern")
    words = _WORDS.get(annotation, "") if isinstance(annotation, type) else ""
    if not words:
        words = "a list" if get_origin(annotation) in {list, tuple} else "a mapping (key: value)"
    elif pattern and field.examples:
        words = f"text such as {field.examples[0]}"
    elif pattern:
        words = f"text that matches {pattern}"
    above = f" above {above}" if (above := _limit(field, "gt")) else ""
    if low and high:
        return f"{words} from {low} to {high}"
    return words + (f" of at least {low}" if low else "") + above + (f" up to {high}" if high else "")


def within_of(field: FieldInfo) -> Within | None:
    """Return the unit and the bounds of a field that is written with a unit; None for others."""
    inside = [item for part in get_args(field.annotation) for item in getattr(part, "__metadata__", ())]
    return next((item for item in (*field.metadata, *inside) if isinstance(item, Within)), None)


def _limit(field: FieldInfo, name: str) -> str:
    found = [getattr(item, name) for item in field.metadata if getattr(item, name, None) is not None]
    return str(found[0]) if found else ""


def _bare(annotation: object) -> object:
    """Strip Annotated and '| None' from an annotation."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        rest = [a for a in get_args(annotation) if a is not type(None)]
        return _bare(rest[0]) if len(rest) == 1 else annotation
    return annotation


def _choices(field: FieldInfo) -> list[str]:
    """Return the words that a field accepts; empty when it accepts more than words."""
    of_registry = [word for each in field.metadata if isinstance(each, OneOf) for word in each.words]
    return of_registry or _literals(field.annotation)


def _literals(annotation: object) -> list[str]:
    bare = _bare(annotation)
    return [str(a) for a in get_args(bare)] if get_origin(bare) is Literal else []


def _example(field: FieldInfo | None) -> str:
    if field is None:
        return "..."
    return str(field.examples[0]) if field.examples else f"<{describe(field)}>"


def _key(name: str, field: FieldInfo) -> str:
    return field.alias or name


def _resolve(data: Plain, loc: tuple[int | str, ...]) -> tuple[Where, Plain]:
    """Return the part of a pydantic location that is in the data, and its value; the rest may be missing keys."""
    steps: list[str | int] = []
    for step in loc:
        if (isinstance(data, dict) and isinstance(step, str) and step in data) or (
            isinstance(data, list) and isinstance(step, int) and step < len(data)
        ):
            steps.append(step)
            data = data[step]  # type: ignore[index]  # the condition above pairs them
    return tuple(steps), data


def _follow(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[FieldInfo | None, list[type[BaseModel]]]:
    """Return the field at a location (None inside lists and for unknown keys) and the models allowed there."""
    models: list[type[BaseModel]] = [model]
    field: FieldInfo | None = None
    for step in loc:
        if isinstance(step, int):
            field = None
            continue
        hit = [f for m in models for name, f in m.model_fields.items() if _key(name, f) == step]
        field = hit[0] if hit else None
        if hit:
            models = [m for f in hit for m in models_in(f.annotation)]
    return field, models


def models_in(annotation: object) -> list[type[BaseModel]]:
    """Return the models that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for arg in get_args(annotation) for model in models_in(arg)]
