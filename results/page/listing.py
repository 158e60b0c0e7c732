"""Tables of a page whose cells are more than text: links to runs, marks of outcomes, and filters.

Changes when a cell of a page can be something else. The template's ``table`` prints them all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

_CLASSES: Mapping[str, str] = {"clean": "pass", "violation": "fail", "error": "fail", "no verdict": "inconclusive"}
"""Style classes for outcomes that are no verdict of a single run."""
_LONG = 24
"""Rows that fit a screen; longer tables scroll."""


@dataclass(frozen=True, slots=True)
class Link:
    """Text that links to a file near the page; plain text if ``href`` is ''."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Mark:
    """An outcome's word, drawn as a mark. ``cost``: a sentence after it; ``page``: where it links to."""

    text: str
    cost: str = ""
    page: str = ""

    @property
    def mark(self) -> str:
        """Class in the style sheet."""
        return _CLASSES.get(self.text, self.text)


Cell = str | Link | Mark


@dataclass(frozen=True, slots=True)
class Listing:
    """A table with a caption. ``classes``: one for each row, for filters. ``stacks``: rows are blocks on a phone."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    classes: Sequence[str] = ()
    stacks: bool = True

    @property
    def is_long(self) -> bool:
        """True if the table scrolls within the page."""
        return len(self.rows) > _LONG


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of a filter; ``name`` is the class of its rows, '' for all rows."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a list that needs no script; its first choice is everything."""

    of: str
    choices: Sequence[Choice]


def href(to: Path, page: Path) -> str:
    """Return a file's relative address for a page, quoted so that a name cannot end it or look like a scheme."""
    relative = os.path.relpath(os.path.abspath(to), os.path.dirname(os.path.abspath(page)))
    return "./" + quote(os.fsencode(relative))


def without_constant(listing: Listing) -> tuple[Listing, Sequence[tuple[str, str]]]:
    """Return the table without text columns that are the same in all rows, and the content of these columns."""
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
