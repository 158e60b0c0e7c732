"""Tables of a page whose cells are more than text: links to runs, marks of outcomes; and what narrows them.

Changes when a cell of a page can be something else. The template's ``table`` prints them all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

_CLASSES: Mapping[str, str] = {"clean": "pass", "violation": "fail", "error": "fail", "no verdict": "inconclusive"}
"""How the style sheet draws outcomes that no single run has, or none."""
_LONG = 24
"""So many rows are a screen's; longer tables scroll."""


@dataclass(frozen=True, slots=True)
class Link:
    """Text that leads to a file beside the page; a plain text where ``href`` is ''."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The word for an outcome, drawn as one."""

    text: str

    @property
    def mark(self) -> str:
        """Its class in the style sheet."""
        return _CLASSES.get(self.text, self.text)


Cell = str | Link | Mark


@dataclass(frozen=True, slots=True)
class Listing:
    """A table with a caption. ``classes``: of each row, for filters. ``stacks``: rows are blocks on a phone."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    classes: Sequence[str] = ()
    stacks: bool = True

    @property
    def is_long(self) -> bool:
        """Whether it scrolls within the page."""
        return len(self.rows) > _LONG


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that a list can be narrowed to; ``name`` is the class of its rows, '' of all."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list can be narrowed by, without a script; its first choice is everything."""

    of: str
    choices: Sequence[Choice]


def href(to: Path, page: Path) -> str:
    """The relative address of a file for a page: a name can neither end it nor be taken for a scheme."""
    relative = os.path.relpath(os.path.abspath(to), os.path.dirname(os.path.abspath(page)))
    return "./" + quote(os.fsencode(relative))


def without_constant(listing: Listing) -> tuple[Listing, Sequence[tuple[str, str]]]:
    """The table without columns of plain text that say the same in all rows, and what these say."""
    if len(listing.rows) < 2:
        return listing, ()
    same = {
        at: first
        for at, first in enumerate(listing.rows[0])
        if isinstance(first, str) and all(row[at] == first for row in listing.rows)
    }
    kept = [at for at in range(len(listing.columns)) if at not in same]
    columns = tuple(listing.columns[at] for at in kept)
    rows = [[row[at] for at in kept] for row in listing.rows]
    told = [(listing.columns[at].removeprefix(">"), text) for at, text in same.items() if text and text != "-"]
    return Listing(listing.caption, columns, rows, listing.classes), told
