"""Reads JSON of strangers: one value after the other, and nothing that JSON has not. PURE."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NoReturn

from hpn.testbed.errors import InputError


def json_values(text: str, where: str) -> list[object]:
    """The values in ``text``, which comes from ``where``, one after the other. InputError with the line for the rest.

    Refused too: NaN and infinity, a key twice in an object, numbers of thousands of digits, what is nested too deep.
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
        except ValueError as error:  # of the hooks, and of numbers that int() will not read
            raise InputError(f"{where}:{_line(text, at)}: in what begins here: {error}") from None
        found.append(value)
        at = _skip(text, at)
    return found


def _skip(text: str, at: int) -> int:
    """Where the next value begins."""
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
