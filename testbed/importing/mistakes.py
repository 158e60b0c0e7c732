"""Mistakes of an import, collected to be reported together."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.errors import InputError
from hpn.testbed.files.document import shorten
from hpn.testbed.importing.found import Place

MOST = 20
"""A file of another tool that is misread has thousands of mistakes of one kind."""


class ImportMistakes:
    """Collector of mistakes; ``check`` raises them. Mistakes that only differ by a name become one."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[Place, list[str]]] = {}
        self._number = 0

    def add(self, place: Place, text: str) -> None:
        """Record one mistake at a place of a file."""
        self._number += 1
        self._found[f"{text}{self._number}", ""] = (place, [text])

    def add_for(self, name: str, place: Place, what: str, text: str) -> None:
        """Record a mistake of many things: ``what``, the names of those that have it, ``text``; placed at the first."""
        _, names = self._found.setdefault((what, text), (place, []))
        names.append(name)

    @property
    def has_room(self) -> bool:
        """False once there are more mistakes than are told; a costly hint is then of no use."""
        return len(self._found) < MOST

    def check(self) -> None:
        """Raise InputError if there is a mistake: the first ones, and how many more there are."""
        if not self._found:
            return
        problems = [_problem(key, *value) for key, value in list(self._found.items())[:MOST]]
        if len(self._found) > MOST:
            problems.append(f"... and {len(self._found) - MOST:,} more mistakes; correct these first")
        raise InputError(problems)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first names and how many more there are: 'a, b, c and 9 more'."""
    shown = ", ".join(shorten(name, 80, quoted=False) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def _problem(key: tuple[str, str], place: Place, names: Sequence[str]) -> str:
    what, text = key
    return f"{place}: {what} {listed(names)}: {text}" if text else f"{place}: {names[0]}"
