"""Output of a client: bytes become lines of bounded length, and lines steps. PURE; docs/clients.md has the format.

Changes when the line format does. The program may be broken or hostile: a line stores at most ``MAX_LINE`` bytes of any
input, has no control character and is always valid text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

MAX_LINE = 4096
"""Most bytes of a line that are stored."""
_PREFIX = "hpn "
_WORDS = ("ready", "step", "error")
_LARGEST_NS = 2**62
_LARGEST = 2**62
_MAX_STEP = 2**32 - 1
_MAX_WRONG = 2**31 - 1
_NUMBER = re.compile(r"[0-9]{1,19}")
_KIND = re.compile(r"[a-z][a-z0-9-]{0,31}")
_SUM = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end: printable text of at most ``MAX_LINE`` bytes; ``cut``: the rest was dropped."""

    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """'hpn ready': everything is prepared."""


@dataclass(frozen=True, slots=True)
class ClientStep:
    """'hpn step N ...': iteration ``number`` is done. ``rank`` None: by all ranks of the reporting process.

    ``begin_ns``, ``end_ns`` None: from the step before, or the begin, to the line's arrival. ``kind`` '': not reported,
    as ``size_bytes`` 0. ``checksum`` ('' for none) must be the same on all ranks. ``wrong``: number of results that the
    program found to be wrong; None: not reported.
    """

    number: int
    rank: int | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    kind: str = ""
    size_bytes: int = 0
    checksum: str = ""
    wrong: int | None = None


@dataclass(frozen=True, slots=True)
class GaveUp:
    """'hpn error TEXT': the reason why the client cannot continue."""

    text: str


@dataclass(frozen=True, slots=True)
class Output:
    """Any other output."""

    text: str


@dataclass(frozen=True, slots=True)
class Misread:
    """A malformed line of our format, with ``why``."""

    text: str
    why: str


Said = Ready | ClientStep | GaveUp | Output | Misread


class LineReader:
    """Splitter of bytes into lines; it buffers at most ``MAX_LINE`` bytes, also of an unfinished line."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._cut = False

    def feed(self, data: bytes) -> list[Line]:
        """Return the lines that ended in ``data``."""
        *whole, rest = data.split(b"\n")
        lines = []
        for piece in whole:
            self._hold(piece)
            lines.append(self._taken())
        self._hold(rest)
        return lines

    def end(self) -> list[Line]:
        """Return the unfinished last line, if any, at the end of the input."""
        return [self._taken()] if self._held else []

    def _hold(self, piece: bytes) -> None:
        room = MAX_LINE - len(self._held)
        self._held += piece[:room]
        self._cut = self._cut or len(piece) > room

    def _taken(self) -> Line:
        line = line_of(bytes(self._held).removesuffix(b"\r"), cut=self._cut)
        self._held.clear()
        self._cut = False
        return line


def line_of(raw: bytes, *, cut: bool = False) -> Line:
    """Return the bytes of a line as text; invalid UTF-8 and unprintable characters are escaped (a tab is a blank)."""
    text = raw.replace(b"\t", b" ").decode(errors="backslashreplace")
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    encoded = text.encode()
    if len(encoded) > MAX_LINE:
        return Line(encoded[:MAX_LINE].decode(errors="ignore"), cut=True)
    return Line(text, cut)


def parse(line: Line) -> Said:
    """Parse a line; ``Output`` when it is not of our format."""
    if not line.text.startswith(_PREFIX):
        return Output(line.text)
    word, _, rest = line.text.removeprefix(_PREFIX).partition(" ")
    if word not in _WORDS:
        return Output(line.text)
    if line.cut:
        return Misread(line.text, f"it is longer than {MAX_LINE} bytes")
    if word == "error":
        return GaveUp(rest.strip())
    if word == "ready":
        return Misread(line.text, "there is something behind ready") if rest.strip() else Ready()
    try:
        return _step(rest.split())
    except ValueError as error:
        return Misread(line.text, str(error))


def _step(words: list[str]) -> ClientStep:
    """Parse the words after 'hpn step'. ValueError with the problem."""
    if not words:
        raise ValueError("the step has no number")
    number = _number("the step", words[0], _MAX_STEP)
    told: dict[str, str] = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals or key not in _KEYS:
            raise ValueError(f"{word[:40]!r} is none of {', '.join(f'{key}=' for key in _KEYS)}")
        if key in told:
            raise ValueError(f"{key}= is there twice")
        told[key] = value
    begin_ns, end_ns = _time(told, "begin"), _time(told, "end")
    if (begin_ns is None) != (end_ns is None):
        raise ValueError("it has one of begin= and end=, and needs both or none")
    if begin_ns is not None and end_ns is not None and begin_ns > end_ns:
        raise ValueError("it ends before it begins")
    return ClientStep(
        number=number,
        rank=_number("rank=", told["rank"], _MAX_STEP) if "rank" in told else None,
        begin_ns=begin_ns,
        end_ns=end_ns,
        kind=_matching(told, "kind", _KIND),
        size_bytes=_number("bytes=", told["bytes"], _LARGEST) if "bytes" in told else 0,
        checksum=_matching(told, "sum", _SUM),
        wrong=_number("wrong=", told["wrong"], _MAX_WRONG) if "wrong" in told else None,
    )


_KEYS = ("rank", "begin", "end", "kind", "bytes", "sum", "wrong")


def _number(what: str, text: str, most: int) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > most:
        raise ValueError(f"{what} is {text[:40]!r}, and no whole number up to {most}")
    return int(text)


def _time(told: Mapping[str, str], key: str) -> int | None:
    return _number(f"{key}=", told[key], _LARGEST_NS) if key in told else None


def _matching(told: Mapping[str, str], key: str, pattern: re.Pattern[str]) -> str:
    if key in told and not pattern.fullmatch(told[key]):
        raise ValueError(f"{key}= is {told[key][:40]!r}, which does not match {pattern.pattern}")
    return told.get(key, "")
