"""Registry of the entries of one concept (faults, metrics, engines) by the key that users write. Pure.

A concept is extended through its registry: a new entry is one object in one list. Required attributes are checked
when the registry is built, so an incomplete entry is an error at import and not a wrong result later.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by key, in the order they are listed; output that is generated from them has the same order."""

    def __init__(
        self,
        what: str,
        key: Callable[[Entry], str],
        entries: Iterable[Entry],
        lacks: Callable[[Entry], Iterable[str]] = lambda _entry: (),
        *,
        of: type | None = None,
    ) -> None:
        """Create a registry of ``entries``, instances of ``of``.

        ``what`` names an entry in messages, ``key`` returns its key, and ``lacks`` its missing attributes. TypeError as
        ``add``.
        """
        self.what = what
        self._key = key
        self._lacks = lacks
        self._of = of
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Append an entry, as plug-ins do.

        TypeError when its key is taken, when it lacks a required attribute, or when its type is wrong.
        """
        if self._of is not None and not isinstance(entry, self._of):
            raise TypeError(f"{entry!r} is no {self.what}: that is a {self._of.__module__}.{self._of.__name__}")
        missing = sorted({*self._lacks(entry), *_mistaken(entry)})
        if missing:
            name = entry.__name__ if isinstance(entry, type) else repr(self._key(entry))
            raise TypeError(f"{self.what} {name} does not say its {', '.join(missing)}")
        key = self._key(entry)
        if key in self._entries:
            raise TypeError(f"{self.what} {key!r} is there already; give this one another name")
        self._entries[key] = entry

    def __getitem__(self, key: str) -> Entry:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _mistaken(entry: object) -> Iterator[str]:
    """Yield the fields of a dataclass whose value has the wrong type; only classes and callables are checked.

    An argument that is left out shifts those behind it, and most of the shifted values then have the wrong type.
    """
    if isinstance(entry, type) or not is_dataclass(entry):
        return
    known = vars(sys.modules[type(entry).__module__])
    for field in fields(entry):
        value, kind = getattr(entry, field.name), known.get(str(field.type))
        if str(field.type).startswith("Callable["):
            wrong = not callable(value) if "| None" not in str(field.type) else not (value is None or callable(value))
        else:
            wrong = isinstance(kind, type) and not isinstance(value, kind)
        if wrong:
            yield field.name
