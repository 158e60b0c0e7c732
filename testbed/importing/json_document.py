"""JSON text as a ``Document``: plain data, and the line of every key, found out when a message needs it. Pure.

The standard library's parser is fast and knows no lines. So a second, slower walk over the text finds the lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from hpn.testbed.errors import InputError
from hpn.testbed.files.document import Document, Plain, Where, shorten
from hpn.testbed.importing.importer import SourceText

_BLANK = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_SCALAR = re.compile(r"[^\s,:\]}]+")
_MOST_LEVELS = 100


def document_of(source: SourceText) -> Document:
    """Parse JSON; a list stands below the key ''. InputError with file:line."""
    try:
        data = json.loads(source.text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problem = f"not JSON: {error.msg} (column {error.colno}); correct it or export the file again"
        raise InputError(f"{source.name}:{error.lineno}: {problem}") from None
    except RecursionError:
        raise InputError(f"{source.name}:1: nested too deep to be a network; name another file") from None
    except ValueError as error:  # NaN, or a number of thousands of digits
        raise InputError(f"{source.name}:1: {shorten(str(error), 100, quoted=False)}; correct the value") from None
    top: dict[str, Plain] = data if isinstance(data, dict) else {"": data}
    return Document(source.name, top, _Lines(source.text, wrapped=top is not data))


def is_json(source: SourceText) -> bool:
    """Return True if the text begins as JSON does."""
    return source.text.lstrip()[:1] in {"{", "["}


def _refuse_constant(name: str) -> Plain:
    raise ValueError(f"{name} is no JSON number")


class _Lines(Mapping[Where, int]):
    """Line of every key and list item; the text is walked over once, at the first question.

    ``wrapped``: the data is a list, and stands below the key ''.
    """

    def __init__(self, text: str, *, wrapped: bool) -> None:
        self._text = text
        self._wrapped = wrapped
        self._found: dict[Where, int] | None = None

    def __getitem__(self, where: Where) -> int:
        return self._all()[where]

    def __iter__(self) -> Iterator[Where]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[Where, int]:
        if self._found is None:
            self._found = _lines(self._text, ("",) if self._wrapped else ())
        return self._found


def _lines(text: str, top: Where) -> dict[Where, int]:
    """Walk over valid JSON text and return the line of each key and list item; deep levels are left out."""
    found: dict[Where, int] = {}
    line, counted, at = 1, 0, 0
    where: list[str | int] = list(top)
    opened: list[str] = []
    while at < len(text):
        character = text[at]
        after = at + 1
        is_item = False
        if character in "{[":
            opened.append(character)
            where.append(0 if character == "[" else "")
            is_item = character == "["
        elif character in "}]":
            opened.pop()
            where.pop()
        elif character == ",":
            is_item = opened[-1] == "["
            where[-1] = _following(where[-1])
        elif character == '"':
            string, after = _string(text, at)
            if opened and opened[-1] == "{" and text.startswith(":", _end_of_blank(text, after)):
                where[-1] = string
                line, counted = line + text.count("\n", counted, at), at
                _note(found, where, line)
        else:
            after = _end_of(text, at)
        at = _end_of_blank(text, after) if is_item else after
        if is_item:
            line, counted = line + text.count("\n", counted, at), at
            _note(found, where, line)
    return found


def _following(step: str | int) -> str | int:
    return step + 1 if isinstance(step, int) else step


def _note(found: dict[Where, int], where: list[str | int], line: int) -> None:
    if len(where) <= _MOST_LEVELS:
        found.setdefault(tuple(where), line)


def _string(text: str, at: int) -> tuple[str, int]:
    """Return the string that begins here, and its end."""
    match = _STRING.match(text, at)
    if match is None:
        return "", at + 1
    return json.loads(match[0]) if "\\" in match[0] else match[0][1:-1], match.end()


def _end_of_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _end_of(text: str, at: int) -> int:
    """Return the end of blank space, or of a number or word, that begins here."""
    end = _end_of_blank(text, at)
    if end > at:
        return end
    match = _SCALAR.match(text, at)
    return match.end() if match else at + 1
