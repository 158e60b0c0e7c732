"""A table in parts that fit a terminal, as text: which columns stand beside each other, and how wide each is. Pure.

Changes when the way tables meet a narrow terminal does. Columns give way in one order: the last go to a further part
first, the names of rows never. Cells wrap between words; what has no spaces (numbers, addresses, MACs, paths) stays
whole where it can. Nothing is left out, but in further parts a long word of a name may be shortened in its middle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.cells import cell_len

GAP = 2  # blanks between columns
_SENTENCE = 24  # columns of text narrower than this are hard to read
_NAME = 4  # as narrow as a name gets
_SHORT = (32, 24, 16)  # what long words of names may be shortened to
_MARK = "..."
_NUMBER = "#"


@dataclass(frozen=True)
class Column:
    """A column: its head, and a cell for every row."""

    head: str
    cells: tuple[str, ...]
    right: bool = False

    @cached_property
    def natural(self) -> int:
        """The width at which no cell wraps."""
        return max(cell_len(line) for text in (self.head, *self.cells) for line in text.split("\n"))

    @cached_property
    def least(self) -> int:
        """The width of the widest word, and some room for sentences."""
        word = max(cell_len(word) for text in (self.head, *self.cells) for word in text.replace("\n", " ").split(" "))
        return max(word, min(self.natural, _SENTENCE))

    def shortened(self, width: int) -> Column:
        """The same with words of so many columns at most: of longer ones only their ends."""
        cells = (" ".join(middle_cut(word, width) for word in cell.split()) for cell in self.cells)
        return Column(self.head, tuple(cells), self.right)


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of a part."""

    column: Column
    width: int


def parts(columns: Sequence[Column], keys: int, room: int) -> Sequence[Sequence[Shown]]:
    """The parts of a table for so much room, in order; a single one where it fits.

    The first ``keys`` columns name the rows. In each part these can be told from each other: by their names, or by
    their numbers where two have the same name.
    """
    for widths in ([each.natural for each in columns], [each.least for each in columns]):
        if _total(widths) <= room:
            return [_spread([Shown(each, width) for each, width in zip(columns, widths, strict=True)], room)]
    names, rest = list(columns[:keys]), columns[keys:]
    if not _tell_apart(names):
        names.insert(0, Column(_NUMBER, tuple(str(at + 1) for at in range(len(columns[0].cells))), right=True))
    for_names = room - max((GAP + min(each.least, room // 3) for each in rest), default=0)
    lead = _narrowed(names, for_names)
    ways = [_packed(lead, again, rest, room) for again in (lead, *_short(names, for_names))]
    return [_spread(part, room) for part in min(ways, key=len)]


def _packed(
    lead: Sequence[Shown], again: Sequence[Shown], rest: Sequence[Column], room: int
) -> Sequence[Sequence[Shown]]:
    """Parts with as many columns as fit each: the first behind ``lead``, the others behind ``again``."""
    found, before = list[Sequence[Shown]](), lead
    while rest or not found:
        free = room - _total(each.width for each in before) - GAP
        taken = _fitting([each.least for each in rest], free)
        found.append([*before, *(Shown(each, min(each.least, free)) for each in rest[:taken])])
        rest, before = rest[taken:], again
    return found


def middle_cut(word: str, width: int) -> str:
    """A word of so many columns: of one that is too long its two ends, for the middle of a name tells least."""
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
    """Whether no two rows have the same in all of these columns."""
    rows = [tuple(" ".join(cell.split()) for cell in row) for row in zip(*(each.cells for each in names), strict=True)]
    return len(set(rows)) == len(rows)


def _narrowed(names: Sequence[Column], room: int) -> list[Shown]:
    """Names that leave room for the rest: the widest give way first, by wrapping."""
    widths = [each.least for each in names]
    while _total(widths) > room and max(widths) > _NAME:
        widths[widths.index(max(widths))] -= 1
    return [Shown(each, width) for each, width in zip(names, widths, strict=True)]


def _short(names: Sequence[Column], room: int) -> Iterator[list[Shown]]:
    """Names in so much room with long words shortened, to several widths: where they still tell rows apart."""
    for most in _SHORT:
        short = [each.shortened(most) for each in names]
        if _tell_apart(short):
            yield _narrowed(short, room)


def _fitting(least: Sequence[int], room: int) -> int:
    """How many columns fit, the first ones: one at least."""
    taken = 1
    while taken < len(least) and _total(least[: taken + 1]) <= room:
        taken += 1
    return taken


def _spread(shown: Sequence[Shown], room: int) -> Sequence[Shown]:
    """The same, wider where room is left and a column can use it; those that lack least get it first."""
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
