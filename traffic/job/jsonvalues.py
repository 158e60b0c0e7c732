"""Strict reader of untrusted JSON: one value after the other, nothing beyond the JSON standard. PURE."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NoReturn

from hpn.testbed.errors import InputError


def json_values(text: str, where: str) -> list[object]:
    """Return the values in ``text``, which comes from ``where``. InputError with the line for anything else.

    It also refuses NaN and infinity, duplicate keys, numbers of thousands of digits, and too deep nesting.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)
    found: list[object] = []
    at = _skip(text, 0)
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise InputError(f"{where}:{error.lineno}: not JSON: {error.msg}") from None
        except RecursionError:
            raise InputError(f"{where}:{_line(text, at)}: what begins here is nested too deep") from None
        except ValueError as error:  # from the hooks, and from numbers that int() refuses
            raise InputError(f"{where}:{_line(text, at)}: in what begins here: {error}") from None
        found.append(value)
        at = _skip(text, at)
    return found


def _skip(text: str, at: int) -> int:
    """Return the start of the next value."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
