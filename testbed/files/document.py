"""YAML input: a file as plain data, with the line of every key for error messages of the form file:line.

Only plain YAML is accepted: no aliases (no billion laughs), no tags, no duplicate keys, no merge keys, no
second document. ``testbed.files.check`` validates the data against a model.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from hpn.testbed.errors import InputError

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
Where = tuple[str | int, ...]
"""A location in the data: keys and list indexes from the top."""

SIZE_LIMIT = 4 * 1024 * 1024
"""A network of 1,000 devices is 0.3 MB; parsing takes about 2 s for each million characters."""
DEPTH_LIMIT = 24

_IN_WORDS = {type(None): "empty", list: "a list", dict: "a mapping"}
_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"(?P<yes>true|yes|on)|false|no|off", re.IGNORECASE)
_INT = re.compile(r"[-+]?[0-9][0-9_]{0,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)(e[-+]?[0-9]{1,3})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed YAML file: ``data`` is its top mapping, ``lines`` the line (from 1) of every key and list item."""

    name: str
    data: dict[str, Plain]
    lines: Mapping[Where, int]

    def value(self, where: Where) -> Plain:
        """Return the value below these keys; None if there is none."""
        found: Plain = self.data
        for key in where:
            found = found.get(str(key)) if isinstance(found, dict) else None
        return found

    def line(self, where: Where) -> int:
        """Return the line of that location, or of the nearest enclosing one."""
        while where not in self.lines and where:
            where = where[:-1]
        return self.lines.get(where, 1)

    def section(self, key: str) -> dict[str, Plain] | None:
        """Return the mapping under a top key: empty when the key is absent, None when its value is no mapping."""
        data = self.data.get(key, {})
        return data if isinstance(data, dict) else None

    def problem(self, where: Where, text: str) -> str:
        """Format 'file:line: text'."""
        return f"{self.name}:{self.line(where)}: {text}"


def read(path: str | os.PathLike[str]) -> Document:
    """Read one YAML file. InputError names the problem with the file and a remedy."""
    shown = shorten(os.fspath(path), 200, quoted=False)
    return parse(_text(Path(path), shown), shown)


def parse(text: str, name: str) -> Document:
    """Parse YAML text; ``name`` is the file name used in messages. InputError lists every mistake."""
    builder = _Builder(name)
    try:
        builder.run(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        builder.problem(line, f"character {_character(error.character)!r} is not allowed in YAML; remove it")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        builder.problem(mark.line + 1 if mark else 1, _syntax_hint(error))
    if builder.problems:
        raise InputError(builder.problems)
    if not isinstance(builder.data, dict):
        raise InputError(f"{name}:1: {_not_a_mapping(builder.data)}; write 'key: value' lines")
    return Document(name, builder.data, builder.lines)


def shorten(value: object, limit: int = 40, *, quoted: bool = True) -> str:
    """Format a value for a one-line message: escaped and at most ``limit`` characters."""
    if value is None or isinstance(value, bool | list | dict):
        return _IN_WORDS.get(type(value)) or str(value).lower()
    text = repr(value) if quoted else repr(str(value))[1:-1]
    return text if len(text) <= limit else text[: limit - 4] + "..." + (text[-1] if quoted else "")


def _character(found: str | int) -> str:
    return chr(found) if isinstance(found, int) else found


class _TooDeep(Exception):
    pass


class _Builder:
    """Builder of plain data from YAML parse events; it records lines and collects mistakes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.data: Plain = None
        self.lines: dict[Where, int] = {(): 1}
        self.problems: list[str] = []

    def problem(self, line: int, text: str) -> None:
        self.problems.append(f"{self.name}:{line}: {text}")

    def run(self, events: Iterator[Event]) -> None:
        documents = 0
        for event in events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents == 2:
                    self.problem(_line(event), "a second document starts here; keep one per file")
                    return
            elif isinstance(event, AliasEvent | ScalarEvent | MappingStartEvent | SequenceStartEvent):
                try:
                    self.data = self._value(event, events, ())
                except _TooDeep:
                    return

    def _value(self, event: Event, events: Iterator[Event], where: Where) -> Plain:
        self._refuse_decoration(event)
        if len(where) > DEPTH_LIMIT:
            self.problem(_line(event), f"nested deeper than {DEPTH_LIMIT} levels; flatten it")
            raise _TooDeep
        if isinstance(event, MappingStartEvent):
            return self._mapping(events, where)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(events, where)
        if isinstance(event, ScalarEvent):
            return event.value if event.style else _plain_scalar(event.value)
        return None

    def _refuse_decoration(self, event: Event) -> None:
        if isinstance(event, AliasEvent):
            self.problem(_line(event), f"'*{getattr(event, 'anchor', '')}' is a YAML alias; write the value out")
        elif anchor := getattr(event, "anchor", None):
            self.problem(_line(event), f"'&{anchor}' is a YAML anchor; write the value out where it is needed")
        tag = getattr(event, "tag", None)
        if tag:
            self.problem(_line(event), f"{shorten(tag)} is a YAML tag; remove it and write the plain value")

    def _mapping(self, events: Iterator[Event], where: Where) -> dict[str, Plain]:
        found: dict[str, Plain] = {}
        for event in events:
            if isinstance(event, MappingEndEvent):
                break
            key = self._key(event, events, where)
            inside = (*where, key)
            if key in found:
                first = self.lines.get(inside, 1)
                self.problem(_line(event), f"key {shorten(key)} stands here again (first in line {first}); keep one")
            else:
                self.lines[inside] = _line(event)
            value = self._value(next(events), events, inside)
            found.setdefault(key, value)
        return found

    def _key(self, event: Event, events: Iterator[Event], where: Where) -> str:
        if isinstance(event, ScalarEvent):
            self._refuse_decoration(event)
            if event.value == "<<" and not event.style:
                self.problem(_line(event), "'<<' is a YAML merge key; write the keys out")
            return str(event.value)
        self._value(event, events, (*where, "?"))
        self.problem(_line(event), "a key must be plain text, not a list or mapping; write 'key: value'")
        return "?"

    def _sequence(self, events: Iterator[Event], where: Where) -> list[Plain]:
        found: list[Plain] = []
        for event in events:
            if isinstance(event, SequenceEndEvent):
                break
            inside = (*where, len(found))
            self.lines[inside] = _line(event)
            found.append(self._value(event, events, inside))
        return found


def _plain_scalar(text: str) -> Plain:
    """Convert an unquoted scalar: YAML 1.2's numbers (so 12:30 and 010 mean what they show), 1.1's yes/no/on/off."""
    if _NULL.fullmatch(text):
        return None
    if boolean := _BOOL.fullmatch(text):
        return boolean["yes"] is not None
    if _INT.fullmatch(text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def _line(event: Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _not_a_mapping(data: Plain) -> str:
    if data is None:
        return "the file is empty"
    return "the file is a list" if isinstance(data, list) else "the file is a single value"


_HINTS = (
    ("cannot start any token", "'\\t'", "a tab stands here; indent with spaces"),
    ("cannot start any token", "'%'", "text starts with '%'; put it in quotes"),
    ("cannot start any token", "", "text starts with a character that means something in YAML; put it in quotes"),
    (
        "mapping values are not allowed here",
        "",
        "a ':' stands where none can; start a new line or quote the text",
    ),
    ("could not find expected ':'", "", "a key without ':'; write 'key: value'"),
    ("expected ',' or '}'", "", "a '{' is not closed or a ',' is missing; write {key: value, key: value}"),
    ("expected ',' or ']'", "", "a '[' is not closed or a ',' is missing; write [one, two]"),
    ("expected <block end>", "", "the indentation does not match the lines above; align it with its neighbours"),
    ("found unexpected end of stream", "", "a quote is opened and never closed; close it"),
)


def _syntax_hint(error: yaml.MarkedYAMLError) -> str:
    said = error.problem or error.context or "not YAML"
    for phrase, also, hint in _HINTS:
        if phrase in said and also in said:
            return hint
    return f"not YAML: {shorten(said, 100, quoted=False)}; quote text that holds special characters"


def _text(path: Path, shown: str) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{shown}: {_irregular(path)}")
        with path.open("rb") as file:
            raw = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        raise InputError(f"{shown}: no such file; {_nearest(path)}") from None
    except ValueError:  # a NUL in the name
        raise InputError(f"{shown}: not a file name; remove the NUL character") from None
    except OSError as error:
        raise InputError(f"{shown}: cannot be read ({error.strerror}); name a readable YAML file") from None
    if len(raw) > SIZE_LIMIT:
        raise InputError(f"{shown}: larger than {SIZE_LIMIT // 1024} KiB; this is not a drill or topology file")
    if b"\0" in raw:
        raise InputError(f"{shown}: a binary file (it holds NUL bytes); name a YAML text file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{shown}:{line}: not UTF-8 text; save the file as UTF-8") from None


def _irregular(path: Path) -> str:
    if not path.is_dir():
        return "not a regular file; name a YAML file"
    try:
        inside = sorted(p.name for p in path.glob("*.y*ml"))[:3]
    except OSError:
        inside = []
    return "a directory; name a file in it" + (f", such as {', '.join(inside)}" if inside else "")


def _nearest(path: Path) -> str:
    try:
        names = {p.name.removesuffix(p.suffix): p.name for p in sorted(path.parent.glob("*.y*ml"))}
    except OSError:
        names = {}
    wanted = path.name.removesuffix(path.suffix) if path.suffix in {".yaml", ".yml"} else path.name
    near = [names[stem] for stem in get_close_matches(wanted, names, n=3)]
    if near:
        return f"did you mean {', '.join(shorten(path.parent / name, 200, quoted=False) for name in near)}?"
    return "check the path" if path.parent.is_dir() else f"there is no directory {shorten(str(path.parent), 200)}"
