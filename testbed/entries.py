"""A registry: the entries of one concept (faults, metrics, engines) by the key that users write. Pure.

A concept is open where its registry is: a new entry is one object in one list, and what every entry must say is asked
for when the registry is made, so that one which forgets something is an error at import and not a wrong answer later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by key, in the order they are listed: what is drawn from them or shown of them keeps that order."""

    def __init__(
        self,
        what: str,
        key: Callable[[Entry], str],
        entries: Iterable[Entry],
        lacks: Callable[[Entry], Iterable[str]] = lambda _entry: (),
    ) -> None:
        """``what`` one of them is called; ``key`` of an entry, and what it ``lacks``. TypeError as ``add``."""
        self.what = what
        self._key = key
        self._lacks = lacks
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add an entry behind the others, as plug-ins do.

        TypeError when its key is taken, or when it does not say what every entry has to.
        """
        missing = sorted(self._lacks(entry))
        if missing:
            raise TypeError(f"{self.what} {_name(entry)} does not say its {', '.join(missing)}")
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


def _name(entry: object) -> str:
    return entry.__name__ if isinstance(entry, type) else repr(entry)
