"""Protobuf's JSON: fields of messages, enums, numbers, and the attributes of a Chakra node. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from hpn.testbed.files.document import shorten

_DIGITS = re.compile(r"[0-9]{1,20}")

Fields = Mapping[str, object]


class Unfit(Exception):
    """A node that cannot be replayed, with the reason."""


def fields_of(value: object) -> dict[str, object] | None:
    """Return an object with field names as in the schema; None if it is not an object, or has a field twice."""
    if not isinstance(value, dict):
        return None
    found = {re.sub(r"[A-Z]", lambda at: f"_{at[0].lower()}", key): each for key, each in value.items()}
    return found if len(found) == len(value) else None


def named(value: object, what: str, names: Sequence[str]) -> str:
    """Return the name of an enum's value, given by name or number. Unfit when it has none."""
    if isinstance(value, str) and value in names:
        return value
    number = whole(value, what, 1 << 32)
    if number >= len(names):
        raise Unfit(f"its {what} is {number}; there are 0 to {len(names) - 1}, {names[0]} to {names[-1]}")
    return names[number]


def whole(value: object, what: str, end: int) -> int:
    """Return a number below ``end``, from a number or protobuf's 64-bit text. Unfit when it is neither."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < end:
        raise Unfit(f"its {what} is {shorten(value)}; write a whole number, not below 0")
    return value


def attributes(fields: Fields) -> Iterator[tuple[str, object]]:
    """Yield names and values of a node's ``attr``; a list's values as a list. Unfit for anything else."""
    given = fields.get("attr", [])
    if not isinstance(given, list):
        raise Unfit("its attr is no list")
    names: set[str] = set()
    for each in given:
        attribute = fields_of(each)
        name = None if attribute is None else attribute.get("name")
        if attribute is None or not isinstance(name, str) or name in names:
            raise Unfit("an entry of its attr is no object with a name, or there are two of a name")
        names.add(name)
        values = [value for key, value in attribute.items() if key.endswith(("_val", "_list"))]
        if len(values) != 1:
            raise Unfit(f"its attr {shorten(name)} has {len(values)} values; write one, as int64_val or another")
        yield name, values[0].get("values", []) if isinstance(values[0], dict) else values[0]
