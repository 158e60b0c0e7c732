"""Splitting of a table into parts that fit a terminal: the columns of each part, and their widths. Pure.

Changes when tables adapt to a narrow terminal in another way. The last columns move to a further part first; the
columns that name rows appear in every part. Cells wrap between words; words without spaces (numbers, addresses, MACs,
paths) stay complete where possible. Nothing is left out, but further parts may shorten a long word of a name in its
middle. A cell of several lines is one line where the whole table then fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.cells import cell_len

GAP = 2  # blanks between columns
_SENTENCE = 24  # columns of text narrower than this are hard to read
_NAME = 4  # minimum width of a name
_SHORT = (32, 24, 16)  # widths to which long words of names may be shortened
_MARK = "..."
_NUMBER = "#"
_JOINED = "; "
"""Between the lines of a cell that are shown as one."""


@dataclass(frozen=True)
class Column:
    """A column: its head, and a cell for every row."""

    head: str
    cells: tuple[str, ...]
    right: bool = False

    @cached_property
    def natural(self) -> int:
        """Width at which no cell wraps."""
        return max(cell_len(line) for text in (self.head, *self.cells) for line in text.split("\n"))

    @cached_property
    def least(self) -> int:
        """Minimum width: that of the widest word, or enough for sentences."""
        word = max(cell_len(word) for text in (self.head, *self.cells) for word in text.replace("\n", " ").split(" "))
        return max(word, min(self.natural, _SENTENCE))

    @property
    def joined(self) -> Column:
        """The column with each cell on one line."""
        return Column(self.head, tuple(cell.replace("\n", _JOINED) for cell in self.cells), self.right)

    def shortened(self, width: int) -> Column:
        """Return the column with its words shortened to at most ``width`` columns, both ends retained."""
        cells = (" ".join(middle_cut(word, width) for word in cell.split()) for cell in self.cells)
        return Column(self.head, tuple(cells), self.right)


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of a part and its width."""

    column: Column
    width: int


def parts(columns: Sequence[Column], keys: int, room: int) -> Sequence[Sequence[Shown]]:
    """Return the parts of a table for a width, in order; a single one if it fits.

    The first ``keys`` columns name the rows. They identify the rows in each part: by name, or by number if two rows
    have the same name.
    """
    joined = [each.joined for each in columns]
    ways = ((joined, [each.natural for each in joined]), *((columns, of) for of in _widths(columns)))
    for shown, widths in ways:
        if _total(widths) <= room:
            return [_spread([Shown(each, width) for each, width in zip(shown, widths, strict=True)], room)]
    names, rest = list(columns[:keys]), columns[keys:]
    if not _tell_apart(names):
        names.insert(0, Column(_NUMBER, tuple(str(at + 1) for at in range(len(columns[0].cells))), right=True))
    for_names = room - max((GAP + min(each.least, room // 3) for each in rest), default=0)
    lead = _narrowed(names, for_names)
    found = [_packed(lead, again, rest, room) for again in (lead, *_short(names, for_names))]
    return [_spread(part, room) for part in min(found, key=len)]


def _widths(columns: Sequence[Column]) -> Sequence[Sequence[int]]:
    return [each.natural for each in columns], [each.least for each in columns]


def _packed(
    lead: Sequence[Shown], again: Sequence[Shown], rest: Sequence[Column], room: int
) -> Sequence[Sequence[Shown]]:
    """Return parts with as many columns as fit each: the first after ``lead``, the others after ``again``."""
    found, before = list[Sequence[Shown]](), lead
    while rest or not found:
        free = room - _total(each.width for each in before) - GAP
        taken = _fitting([each.least for each in rest], free)
        found.append([*before, *(Shown(each, min(each.least, free)) for each in rest[:taken])])
        rest, before = rest[taken:], again
    return found


def middle_cut(word: str, width: int) -> str:
    """Return the word shortened to ``width`` columns: both ends stay, since the middle of a name says least."""
    if cell_len(word) <= width:
        return word
    room = max(0, width - len(_MARK))
    return _begin(word, room - room // 2) + _MARK + _begin(word[::-1], room // 2)[::-1]


def _begin(text: str, width: int) -> str:
    taken = 0
    for at, each in enumerate(text):
        taken += cell_len(each)
        if taken > width:
            return text[:at]
    return text


def _tell_apart(names: Sequence[Column]) -> bool:
    """Return True if these columns identify every row."""
    rows = [tuple(" ".join(cell.split()) for cell in row) for row in zip(*(each.cells for each in names), strict=True)]
    return len(set(rows)) == len(rows)


def _narrowed(names: Sequence[Column], room: int) -> list[Shown]:
    """Return the names wrapped to leave room for the rest; the widest are narrowed first."""
    widths = [each.least for each in names]
    while _total(widths) > room and max(widths) > _NAME:
        widths[widths.index(max(widths))] -= 1
    return [Shown(each, width) for each, width in zip(names, widths, strict=True)]


def _short(names: Sequence[Column], room: int) -> Iterator[list[Shown]]:
    """Yield the names with long words shortened to several widths, if they still identify the rows."""
    for most in _SHORT:
        short = [each.shortened(most) for each in names]
        if _tell_apart(short):
            yield _narrowed(short, room)


def _fitting(least: Sequence[int], room: int) -> int:
    """Return the number of leading columns that fit, at least one."""
    taken = 1
    while taken < len(least) and _total(least[: taken + 1]) <= room:
        taken += 1
    return taken


def _spread(shown: Sequence[Shown], room: int) -> Sequence[Shown]:
    """Return the columns widened into the spare room; those that lack least are widened first."""
    widths = [each.width for each in shown]
    spare = room - _total(widths)
    for at in sorted(range(len(shown)), key=lambda each: shown[each].column.natural - widths[each]):
        more = max(0, min(shown[at].column.natural - widths[at], spare))
        widths[at] += more
        spare -= more
    return [Shown(each.column, width) for each, width in zip(shown, widths, strict=True)]


def _total(widths: Iterable[int]) -> int:
    found = list(widths)
    return sum(found) + GAP * (len(found) - 1)
